"""sparse_fused_attention and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import VarType


class SparseFusedAttention(OpDef, type="sparse_fused_attention"):
    r"""$$out = \mathrm{softmax}(query\, key^T / \sqrt{d})\, value$$ over the places that sparse_mask lists."""

    query = Input("[batch, heads, length, d].")
    key = Input("[batch, heads, length, d].")
    value = Input("[batch, heads, length, d].")
    sparse_mask = Input("Sparse tensor in CSR [batch * heads, length, length], of which the pattern is read.")
    key_padding_mask = Input("[batch, length]: keys with 0 take no part.", dispensable=True)
    attn_mask = Input("[length, length]: places with 0 take no part.", dispensable=True)
    out = Output("[batch, heads, length, d].")
    softmax = Output("The weights over sparse_mask's pattern.", intermediate=True)
    expected_kernel_type = dtype_of("query")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("query")
        if not dims and not ctx.is_runtime:
            return
        batch, heads, length, _ = ctx.require_rank("query", 4)
        ctx.require_dims("key", dims, why="the shape of query")
        ctx.require_dims("value", dims, why="the shape of query")
        count = -1 if min(batch, heads) < 0 else batch * heads
        ctx.require_dims("sparse_mask", (count, length, length), why="[batch * heads, length, length] of query")
        ctx.require_dims("key_padding_mask", (batch, length))
        ctx.require_dims("attn_mask", (length, length))
        ctx.set_dim("out", dims)
        ctx.set_dim("softmax", (count, length, length))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.LOD_TENSOR)
        ctx.set_dtype("out", ctx.dtype("query"))
        ctx.set_kind("softmax", ctx.kind("sparse_mask"))
        ctx.set_dtype("softmax", ctx.dtype("query"))


class SparseFusedAttentionGrad(
    GradOpDef, of=SparseFusedAttention, reads="query key value softmax out@GRAD", grads_of="query key value"
):
    r"""With the weights w and $$s = w (v - \sum_j w_j v_j)$$ of $$v = out@GRAD\, value^T$$:

    $$query@GRAD = s\, key / \sqrt{d},\quad key@GRAD = s^T query / \sqrt{d},\quad value@GRAD = w^T out@GRAD$$
    """
