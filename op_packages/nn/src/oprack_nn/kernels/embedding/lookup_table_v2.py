"""Kernels of lookup_table_v2 and its gradient."""

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


@kernel("lookup_table_v2", place=PLACES, dtypes=TABLES)
def lookup_table_v2(Ids: Array, W: Array, *, padding_idx: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    return look_up(W, Ids, padding_idx, ctx.op_type, xp)


@kernel("lookup_table_v2", dtypes=TABLES)
def lookup_table_v2_selected_rows(Ids: Array, W: SelectedRows, *, padding_idx: int, ctx: KernelContext) -> Array:
    return look_up_rows(W, Ids, padding_idx, True, ctx.op_type)


lookup_table_v2_grad = kernel("lookup_table_v2_grad", dtypes=REALS, **SCATTER)(table_grad)
lookup_table_v2_grad_rows = kernel("lookup_table_v2_grad", place=PLACES, dtypes=REALS)(table_grad_rows)
