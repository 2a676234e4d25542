"""Kernels of lookup_table and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import SelectedRows

from oprack_nn.kernels.embedding._family import (
    PLACES,
    REALS,
    SCATTER,
    TABLES,
    look_up,
    look_up_rows,
    table_grad,
    table_grad_rows,
)


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
