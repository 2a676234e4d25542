"""Kernel of coalesce_tensor."""

from __future__ import annotations

from oprack.errors import UnimplementedError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import numpy_dtype

from oprack_tensor.dims import cut_shapes, product

_CPU_ALIGNMENT = 4096  # bytes, as Paddle's CPU allocator has it
_GPU_ALIGNMENT = 256


@kernel("coalesce_tensor", place=("cpu", "cuda"))
def coalesce_tensor(
    Input: list[Array],
    *,
    dtype: int,
    copy_data: bool,
    set_constant: bool,
    constant: float,
    use_align: bool,
    align_size: int,
    user_defined_size_of_dtype: int,
    concated_shapes: list[int],
    concated_ranks: list[int],
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | list[Array]]:
    if not (copy_data or set_constant):
        # Later ops would have to write into this memory, which ops here never do. Of fleet's fused all-reduces the pack
        # collective makes programs that need none.
        raise UnimplementedError(
            "op coalesce_tensor: copy_data and set_constant are false, so other ops would have to write into the "
            "memory that it makes; ops here make arrays of their own. Programs of fleet with fused all-reduces run "
            "when oprack-collective is installed; for others set copy_data"
        )
    wanted = numpy_dtype(dtype)
    shapes = cut_shapes(concated_shapes, concated_ranks) or [t.shape for t in Input]
    element = user_defined_size_of_dtype if user_defined_size_of_dtype > 0 else wanted.itemsize
    unit = align_size if align_size > 0 else _CPU_ALIGNMENT if ctx.place.kind == "cpu" else _GPU_ALIGNMENT
    offsets, total = [], 0
    for shape in shapes:
        offsets.append(total)
        size = product(shape)
        total += -(-size * element // unit) * unit // element if use_align else size
    fused = xp.full(total, constant if set_constant else 0, wanted)
    parts = [fused[o : o + product(s)].reshape(s) for o, s in zip(offsets, shapes, strict=True)]
    if copy_data and not set_constant:
        for part, tensor in zip(parts, Input, strict=True):
            part[...] = tensor
    return {"Output": parts, "FusedOutput": fused}
