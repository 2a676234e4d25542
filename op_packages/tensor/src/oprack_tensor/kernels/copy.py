"""The same elements again: in memory of their own, as another dtype, under another LoD, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows, check_lod, numpy_dtype
from oprack.types import BOOL, FLOATS, HALF_FLOATS, INTEGERS

from oprack_tensor.dims import cut_shapes, product


# convert --------------------------------------------------------------------------------------------------------------
# Conversions to another dtype, one for each kind of variable.
def _converted(array: Array, dtype: np.dtype[Any]) -> Array:
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    with np.errstate(all="ignore"):  # NaN and values out of range convert as the machine does it
        return array.astype(dtype)


def convert(X: Array, *, out_dtype: int) -> Array:
    """X in another dtype; of complex numbers the real part where the dtype is not complex."""
    return _converted(X, numpy_dtype(out_dtype))


def convert_rows(X: SelectedRows, *, out_dtype: int) -> SelectedRows:
    """The same rows, their values in another dtype."""
    value = _converted(X.value, numpy_dtype(out_dtype))
    return SelectedRows(X.rows, value, X.height, place=X.place, check=False)


# copies ---------------------------------------------------------------------------------------------------------------
# Copies, one for each kind of variable.
def copy_of(X: Array) -> Array:
    """X in memory of its own."""
    return X.copy()


def copy_of_rows(X: SelectedRows) -> SelectedRows:
    """The same rows and values in memory of their own."""
    return SelectedRows(X.rows.copy(), X.value.copy(), X.height, place=X.place, check=False)


# assign ---------------------------------------------------------------------------------------------------------------
@kernel("assign", place=("cpu", "cuda"))
def assign(X: Array | None = None) -> Array | None:
    return None if X is None else X.copy()


@kernel("assign", place=("cpu", "cuda"))
def assign_rows(X: SelectedRows | Any = None) -> SelectedRows:
    return SelectedRows(X.rows.copy(), X.value.copy(), X.height, place=X.place, check=False)


@kernel("assign", place=("cpu", "cuda"))
def assign_array(X: LoDTensorArray | Any = None) -> LoDTensorArray:
    return LoDTensorArray(
        None if t is None else LoDTensor(t.array.copy(), t.lod, place=t.place, check=False) for t in X
    )


# cast -----------------------------------------------------------------------------------------------------------------
cast = kernel("cast", place=("cpu", "cuda"))(convert)

cast_rows = kernel("cast", place=("cpu", "cuda"))(convert_rows)


# coalesce_tensor ------------------------------------------------------------------------------------------------------
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


# memcpy ---------------------------------------------------------------------------------------------------------------
memcpy = kernel("memcpy", place=("cpu", "cuda"))(copy_of)

memcpy_rows = kernel("memcpy", place=("cpu", "cuda"))(copy_of_rows)


# memcpy_d2h -----------------------------------------------------------------------------------------------------------
memcpy_d2h = kernel("memcpy_d2h", place=("cpu", "cuda"))(copy_of)

memcpy_d2h_rows = kernel("memcpy_d2h", place=("cpu", "cuda"))(copy_of_rows)


# lod_reset ------------------------------------------------------------------------------------------------------------
_ANY = FLOATS | HALF_FLOATS | INTEGERS | BOOL


@kernel("lod_reset", place=("cpu", "cuda"), dtypes=_ANY, view=True)
def lod_reset(
    X: Array, Y: Array | None = None, *, target_lod: list[int], append: bool, ctx: KernelContext
) -> LoDTensor:
    """X itself under another LoD."""
    if Y is not None and ctx.lod("Y"):
        new = [list(level) for level in ctx.lod("Y")]
    elif Y is not None:
        offsets = Y.get() if hasattr(Y, "get") else Y  # of the device
        new = [offsets.reshape(-1).astype("int64").tolist()]
    elif target_lod:
        new = [list(target_lod)]
    else:
        raise InvalidArgumentError(f"op {ctx.op_type}: neither Y nor target_lod is given; expected one of them")
    lod = [*ctx.lod("X"), *new] if append else new
    return LoDTensor(X, check_lod(lod, X.shape[0], f"op {ctx.op_type}: the new LoD of X"), check=False)


@kernel("lod_reset_grad", place=("cpu", "cuda"), dtypes=_ANY, view=True)
def lod_reset_grad(Out_grad: Array) -> Array:
    """The gradient itself; X's LoD is shared by the shape rule."""
    return Out_grad


# memcpy_h2d -----------------------------------------------------------------------------------------------------------
memcpy_h2d = kernel("memcpy_h2d", place=("cpu", "cuda"))(copy_of)

memcpy_h2d_rows = kernel("memcpy_h2d", place=("cpu", "cuda"))(copy_of_rows)


# npu_identity ---------------------------------------------------------------------------------------------------------
@kernel("npu_identity", place=("cpu", "cuda"))
def npu_identity(x: Array) -> Array:
    """A copy."""
    return x.copy()


# share_buffer ---------------------------------------------------------------------------------------------------------
@kernel("share_buffer", place=("cpu", "cuda"))
def share_buffer(X: list[Array]) -> dict[str, Any]:
    """Copies for Out and for XOut."""
    return {"Out": [x.copy() for x in X], "XOut": [x.copy() for x in X]}


# share_data -----------------------------------------------------------------------------------------------------------
share_data = kernel("share_data", place=("cpu", "cuda"))(copy_of)

share_data_rows = kernel("share_data", place=("cpu", "cuda"))(copy_of_rows)


# transfer_dtype -------------------------------------------------------------------------------------------------------
transfer_dtype = kernel("transfer_dtype", place=("cpu", "cuda"))(convert)

transfer_dtype_rows = kernel("transfer_dtype", place=("cpu", "cuda"))(convert_rows)
