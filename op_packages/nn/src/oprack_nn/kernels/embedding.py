"""Kernels of embeddings."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import SelectedRows, ShapeOnly, merge_rows
from oprack.types import FLOATS, HALF_FLOATS

# shared ---------------------------------------------------------------------------------------------------------------
# Rows of a table by id, of a table of which only some rows are there, and gradients of tables.
PLACES = ("cpu", "cuda")

SCATTER: dict[str, Any] = {"place": PLACES, "deterministic": {"cpu"}}  # a GPU adds what meets in one place in any order

REALS = FLOATS | HALF_FLOATS

TABLES = REALS | {"int8", "int16"}


def require_ids(ids: Array, rows: int, padding_idx: int, op_type: str, xp: ArrayModule) -> None:
    """Ids inside of the table; not looked at on a GPU, where it would wait for the device."""
    if xp is not np or not ids.size:
        return
    low, high = int(ids.min()), int(ids.max())
    if low >= 0 and high < rows:
        return
    wrong = ids[((ids < 0) | (ids >= rows)) & (ids != padding_idx)]
    if wrong.size:
        raise InvalidArgumentError(
            f"op {op_type}: Ids holds {int(wrong[0])}; expected 0 <= id < {rows}, the rows of W, or padding_idx "
            f"{padding_idx}; check the vocabulary that made the ids"
        )


def look_up(table: Array, ids: Array, padding_idx: int, op_type: str, xp: ArrayModule) -> Array:
    """Rows of a table by id, zeros for padding_idx."""
    require_ids(ids, len(table), padding_idx, op_type, xp)
    if padding_idx == -1:
        return table.take(ids, axis=0)
    padding = ids == padding_idx
    if not len(table):
        return xp.zeros((*ids.shape, *table.shape[1:]), table.dtype)
    out = table.take(xp.where(padding, 0, ids), axis=0)
    out[padding] = 0
    return out


def look_up_rows(table: SelectedRows, ids: Array, padding_idx: int, missing_is_zero: bool, op_type: str) -> Array:
    """As look_up, for a table of which only some rows are there."""
    order = np.argsort(table.rows, kind="stable")
    at = np.searchsorted(table.rows, ids, sorter=order)
    found = at < len(order)
    if len(order):
        at = order[np.minimum(at, len(order) - 1)]
        found &= table.rows[at] == ids
    known = found | (ids == padding_idx) if padding_idx != -1 else found
    if not missing_is_zero and not known.all():
        raise InvalidArgumentError(
            f"op {op_type}: id {int(ids[~known][0])} is not among the {len(order)} rows of the SelectedRows W; add the "
            "row, or set is_test to get zeros for it"
        )
    shown = found & (ids != padding_idx) if padding_idx != -1 else found
    out = np.zeros((*ids.shape, *table.value.shape[1:]), table.value.dtype)
    out[shown] = table.value[at[shown]]
    return out


@overload
def gradient_of_rows(
    height: int,
    ids: Array,
    dout: Array,
    is_sparse: Literal[False],
    padding_idx: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array: ...
@overload
def gradient_of_rows(
    height: int, ids: Array, dout: Array, is_sparse: bool, padding_idx: int, ctx: KernelContext, xp: ArrayModule
) -> Array | SelectedRows: ...
def gradient_of_rows(
    height: int, ids: Array, dout: Array, is_sparse: bool, padding_idx: int, ctx: KernelContext, xp: ArrayModule
) -> Array | SelectedRows:
    """The gradient of a table of `height` rows, from those of the rows that were read."""
    ids = ids.reshape(-1)
    values = dout.reshape(ids.size, -1) if ids.size else dout.reshape(0, dout.shape[-1])
    if is_sparse:
        return SelectedRows(ids.astype("int64"), values.copy(), height, place=ctx.place, check=False)
    grad = xp.zeros((height, values.shape[1]), values.dtype)
    if xp is np:
        rows, sums = merge_rows(ids, values)
        grad[rows] = sums
    else:
        xp.add.at(grad, ids, values)
    if padding_idx != -1 and 0 <= padding_idx < height:
        grad[padding_idx] = 0
    return grad


def table_grad(
    W: ShapeOnly, Ids: Array, Out_grad: Array, *, is_sparse: bool, padding_idx: int, ctx: KernelContext, xp: ArrayModule
) -> Array | SelectedRows:
    """The gradient of a table."""
    return gradient_of_rows(W.shape[0], Ids, Out_grad, is_sparse, padding_idx, ctx, xp)


def table_grad_rows(
    W: SelectedRows,
    Ids: Array,
    Out_grad: Array,
    *,
    is_sparse: bool,
    padding_idx: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array | SelectedRows:
    """The gradient of a table of which only some rows are there."""
    return gradient_of_rows(W.height, Ids, Out_grad, is_sparse, padding_idx, ctx, xp)


# c_embedding ----------------------------------------------------------------------------------------------------------
def _rows(ids: Array, rows: int, start_index: int, padding_idx: int, xp: ArrayModule) -> Array:
    """Rows of W by id; one behind the last for an id that is none of its, and for padding_idx."""
    local = ids.astype("int64") - start_index
    own = (local >= 0) & (local < rows)
    return xp.where(own if padding_idx == -1 else own & (ids != padding_idx), local, rows)


@kernel("c_embedding", place=PLACES, dtypes=REALS)
def c_embedding(
    W: Array, Ids: Array, *, start_index: int, vocab_size: int, padding_idx: int, ctx: KernelContext, xp: ArrayModule
) -> Array:
    if vocab_size >= 0:
        require_ids(Ids, vocab_size, padding_idx, ctx.op_type, xp)
    return look_up(W, _rows(Ids, len(W), start_index, padding_idx, xp), len(W), ctx.op_type, xp)


@kernel("c_embedding_grad", dtypes=REALS, **SCATTER)
def c_embedding_grad(
    W: ShapeOnly,
    Ids: Array,
    Out_grad: Array,
    *,
    start_index: int,
    padding_idx: int,
    is_sparse: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array | SelectedRows:
    # As in the gradients of whole tables, the row of padding_idx is left out of dense ones alone.
    rows = _rows(Ids, W.shape[0], start_index, -1 if is_sparse else padding_idx, xp)
    if is_sparse:
        own = rows < W.shape[0]
        return gradient_of_rows(W.shape[0], rows[own], Out_grad[own], True, -1, ctx, xp)
    return gradient_of_rows(W.shape[0] + 1, rows, Out_grad, False, -1, ctx, xp)[:-1].copy()


# lookup_table ---------------------------------------------------------------------------------------------------------
@kernel("lookup_table", place=PLACES, dtypes=TABLES)
def lookup_table(W: Array, Ids: Array, *, padding_idx: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    return look_up(W, Ids[..., 0], padding_idx, ctx.op_type, xp)


@kernel("lookup_table", dtypes=TABLES)
def lookup_table_selected_rows(
    W: SelectedRows, Ids: Array, *, padding_idx: int, is_test: bool, ctx: KernelContext
) -> Array:
    return look_up_rows(W, Ids[..., 0], padding_idx, is_test, ctx.op_type)


lookup_table_grad = kernel("lookup_table_grad", dtypes=REALS, **SCATTER)(table_grad)

lookup_table_grad_rows = kernel("lookup_table_grad", place=PLACES, dtypes=REALS)(table_grad_rows)


# lookup_table_v2 ------------------------------------------------------------------------------------------------------
@kernel("lookup_table_v2", place=PLACES, dtypes=TABLES)
def lookup_table_v2(Ids: Array, W: Array, *, padding_idx: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    return look_up(W, Ids, padding_idx, ctx.op_type, xp)


@kernel("lookup_table_v2", dtypes=TABLES)
def lookup_table_v2_selected_rows(Ids: Array, W: SelectedRows, *, padding_idx: int, ctx: KernelContext) -> Array:
    return look_up_rows(W, Ids, padding_idx, True, ctx.op_type)


lookup_table_v2_grad = kernel("lookup_table_v2_grad", dtypes=REALS, **SCATTER)(table_grad)

lookup_table_v2_grad_rows = kernel("lookup_table_v2_grad", place=PLACES, dtypes=REALS)(table_grad_rows)
