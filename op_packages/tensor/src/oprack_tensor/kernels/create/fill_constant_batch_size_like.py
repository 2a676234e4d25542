"""Kernel of fill_constant_batch_size_like."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly, numpy_dtype

from oprack_tensor.kernels.create._constant import cast, constant


@kernel("fill_constant_batch_size_like", place=("cpu", "cuda"))
def fill_constant_batch_size_like(
    Input: ShapeOnly,
    *,
    shape: list[int],
    input_dim_idx: int,
    output_dim_idx: int,
    dtype: int,
    value: float,
    str_value: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    wanted, dims, lod = numpy_dtype(dtype), list(shape), ctx.lod("Input")
    dims[output_dim_idx] = len(lod[-1]) - 1 if lod and input_dim_idx == 0 else Input.shape[input_dim_idx]
    number = constant("fill_constant_batch_size_like", value, str_value, wanted)
    return xp.full(dims, cast(number, wanted), wanted)
