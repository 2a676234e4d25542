"""Kernels of fused_embedding_seq_pool and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import SelectedRows

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("fused_embedding_seq_pool", place=BOTH, dtypes=DTYPES)
def fused_embedding_seq_pool(W: Array, Ids: Array, *, padding_idx: int, ctx: KernelContext) -> Array:
    """lookup_table_v2, sequence_pool."""
    step = Steps(ctx)
    rows = step("lookup_table_v2", W=W, Ids=Ids.reshape(-1), padding_idx=padding_idx)
    return step("sequence_pool", X=rows, pooltype="SUM", is_test=True, lods={"X": ctx.lod("Ids")})


@kernel("fused_embedding_seq_pool_grad", place=BOTH, dtypes=DTYPES, deterministic={"cpu"})
def fused_embedding_seq_pool_grad(
    W: Array, Ids: Array, Out_grad: Array, *, padding_idx: int, is_sparse: bool, ctx: KernelContext
) -> Array | SelectedRows:
    """sequence_pool_grad, lookup_table_v2_grad."""
    step = Steps(ctx)
    rows = step("sequence_pool_grad", Out_grad=Out_grad, pooltype="SUM", lods={"X": ctx.lod("Ids")})
    ids = Ids.reshape(-1)
    if padding_idx != -1:
        ids, rows = ids[ids != padding_idx], rows[ids != padding_idx]
    return step("lookup_table_v2_grad", Ids=ids, W=W, Out_grad=rows, is_sparse=is_sparse)
