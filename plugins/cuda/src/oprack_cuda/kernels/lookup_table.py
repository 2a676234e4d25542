"""lookup_table: one gather, and for the gradient one pass of atomic additions."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, decline
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS, HALF_FLOATS

from oprack_cuda.kernels._launch import I64, cuda_kernel, dense, launch, sums_dtype

REALS = FLOATS | HALF_FLOATS


def _look_up(table: Array, ids: Array, padding_idx: int, xp: ArrayModule) -> Array:
    """An id outside the table gives zeros: to say which one it was, the host would have to wait."""
    table, ids = dense(xp, table), dense(xp, ids, "int64")
    out = xp.empty((*ids.shape, *table.shape[1:]), table.dtype)
    width = out.size // max(ids.size, 1)
    numbers = I64(ids.size), I64(width), I64(len(table)), I64(padding_idx)
    launch(xp, "rows.cu", "look_up", table.dtype, out.size, table, ids, out, *numbers)
    return out


@cuda_kernel("lookup_table", REALS)
def lookup_table(W: Array, Ids: Array, *, padding_idx: int, xp: ArrayModule) -> Array:
    return _look_up(W, Ids[..., 0], padding_idx, xp)


@cuda_kernel("lookup_table_v2", REALS)
def lookup_table_v2(Ids: Array, W: Array, *, padding_idx: int, xp: ArrayModule) -> Array:
    return _look_up(W, Ids, padding_idx, xp)


@cuda_kernel("lookup_table_grad", REALS, deterministic=False, may_decline=True)
@cuda_kernel("lookup_table_v2_grad", REALS, deterministic=False, may_decline=True)
def lookup_table_grad(
    W: ShapeOnly, Ids: Array, Out_grad: Array, *, is_sparse: bool, padding_idx: int, xp: ArrayModule
) -> Array:
    if is_sparse:
        return decline("is_sparse asks for rows")
    ids, values = dense(xp, Ids.reshape(-1), "int64"), dense(xp, Out_grad)
    width = values.shape[-1]
    total = xp.zeros((W.shape[0], width), sums_dtype(values.dtype))
    numbers = I64(ids.size), I64(width), I64(W.shape[0]), I64(padding_idx)
    launch(xp, "rows.cu", "add_rows", values.dtype, values.size, values, ids, total, *numbers)
    return total.astype(values.dtype, copy=False)
