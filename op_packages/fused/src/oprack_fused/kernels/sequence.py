"""Kernels of chains of sequence ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.errors import InvalidLoDError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor, SelectedRows

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


# pool -----------------------------------------------------------------------------------------------------------------
# Pooled sequences side by side, as steps.
def pooled(
    X: list[Array], pooltype: str, ctx: KernelContext, after: Callable[[Array], Array] = lambda x: x
) -> LoDTensor:
    """sequence_pool of each X, what `after` makes of it, and concat.

    Raises:
        InvalidLoDError: The tensors of X differ in the number of their sequences.
    """
    step, lods = Steps(ctx), [ctx.lod("X", i) for i in range(len(X))]
    counts = [len(lod[-1]) - 1 for lod in lods]
    if len(set(counts)) > 1:
        raise InvalidLoDError(f"op {ctx.op_type}: the tensors of X have {counts} sequences; expected as many in each")
    pools = [
        after(step("sequence_pool", X=x, pooltype=pooltype, is_test=True, lods={"X": lod[-1:]}))
        for x, lod in zip(X, lods, strict=True)
    ]
    return LoDTensor(step("concat", X=pools, axis=1), [list(range(counts[0] + 1))])


# fused_embedding_seq_pool ---------------------------------------------------------------------------------------------
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


# fusion_seqconv_eltadd_relu -------------------------------------------------------------------------------------------
@kernel("fusion_seqconv_eltadd_relu", place=BOTH, dtypes=DTYPES)
def fusion_seqconv_eltadd_relu(
    X: Array,
    Filter: Array,
    Bias: Array,
    *,
    contextLength: int,
    contextStart: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """sequence_conv, elementwise_add, relu."""
    step = Steps(ctx)
    window: dict[str, Any] = {"contextLength": contextLength, "contextStart": contextStart}
    out = step("sequence_conv", X=X, Filter=Filter, lods={"X": ctx.lod("X")}, **window)
    out = step("relu", X=step("elementwise_add", X=out, Y=Bias.reshape(-1), axis=-1))
    return out, xp.empty(0, X.dtype)


# fusion_seqexpand_concat_fc -------------------------------------------------------------------------------------------
@kernel("fusion_seqexpand_concat_fc", place=BOTH, dtypes=DTYPES)
def fusion_seqexpand_concat_fc(
    X: list[Array],
    FCWeight: Array,
    FCBias: Array | None = None,
    *,
    fc_activation: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """sequence_expand, concat, fc."""
    step, (first, *others) = Steps(ctx), X
    lods = {"Y": ctx.lod("X")[-1:]}
    rows = [first, *(step("sequence_expand", X=x, Y=first, ref_level=0, lods=lods) for x in others)]
    out = step.dense(step("concat", X=rows, axis=1), FCWeight, FCBias, fc_activation)
    return out, xp.empty(0, out.dtype)


# fusion_seqpool_concat ------------------------------------------------------------------------------------------------
@kernel("fusion_seqpool_concat", place=BOTH, dtypes=DTYPES)
def fusion_seqpool_concat(X: list[Array], *, pooltype: str, ctx: KernelContext) -> LoDTensor:
    """sequence_pool, concat."""
    return pooled(X, pooltype, ctx)


# fusion_seqpool_cvm_concat --------------------------------------------------------------------------------------------
@kernel("fusion_seqpool_cvm_concat", place=BOTH, dtypes=DTYPES)
def fusion_seqpool_cvm_concat(X: list[Array], *, pooltype: str, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """sequence_pool, logarithms of the first two columns, concat."""

    def logarithms(x: Array) -> Array:
        shows, clicks = xp.log1p(x[:, :1]), xp.log1p(x[:, 1:2])
        return xp.concatenate([shows, clicks - shows, x[:, 2:]], axis=1)

    return pooled(X, pooltype, ctx, logarithms)
