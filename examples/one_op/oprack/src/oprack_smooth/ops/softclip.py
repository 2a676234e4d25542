"""softclip: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output


class Softclip(OpDef, type="softclip"):
    r"""$$Out = limit \cdot \tanh(X / limit)$$, element by element."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape, dtype and LoD of X.")
    limit = Attr(1.0, "Where the result ends.").greater_than(0.0)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class SoftclipGrad(GradOpDef, of=Softclip, reads="Out", like="Out"):
    r"""$$X@GRAD = Out@GRAD \cdot (1 - (Out / limit)^2)$$"""
