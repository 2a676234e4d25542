"""Special functions whose slots are spelled in lower case."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import like
from oprack.op.sbp import unary


class LowerUnary(OpDef):
    """An element-wise function of one input."""

    x = Input("Tensor of any shape.")
    out = Output("Shape and LoD of x.")
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("out", "x")])


class LowerGrad(GradOpDef, reads="x"):
    """Gradient of one whose derivative is a function of x."""


class LowerGradWithOut(GradOpDef, reads="x out"):
    """Gradient of one whose derivative is a function of x and out."""
