"""What functions of the listed elements share."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output


class Unary(OpDef):
    """A function of every listed element; what is not listed stays zero."""

    x = Input("Sparse tensor.")
    out = Output("Sparse tensor of x's layout and pattern.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", ctx.dim("x"))


class GradFromX(GradOpDef, reads="x"):
    """Gradient of a Unary whose derivative is a function of x."""


class GradFromOut(GradOpDef, reads="out", like="out"):
    """Gradient of a Unary whose derivative is a function of out."""
