"""self_dp_attention: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output


class SelfDpAttention(OpDef, type="self_dp_attention"):
    r"""$$Out = \operatorname{softmax}(alpha\,Q K^T)\,V$$ for each head; Q, K and V lie along the third dim of X."""

    X = Input("[B, S, 3, H, D].")
    Out = Output("[B, S, H, D].")
    alpha = Attr(1.0, "Factor of the products.")
    head_number = Attr(1, "H.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 5)
        b, s, _, _, d = dims
        ctx.require_dims("X", (b, s, 3, ctx.attr("head_number"), d), why="with three parts and `head_number` heads")
        ctx.set_dim("Out", (b, s, ctx.attr("head_number"), d))
