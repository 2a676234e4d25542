"""gaussian_inplace and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import like

from oprack_random.ops._draw_like import SEED


class GaussianInplace(OpDef, type="gaussian_inplace"):
    r"""$$out \sim N(mean, std^2)$$"""

    x = Input("Gives shape and type; its values are replaced.")
    out = Output("Shape, type and LoD of x.")
    mean = Attr(0.0, "Mean.")
    std = Attr(1.0, "Standard deviation.")
    seed = SEED
    inplace = {"x": "out"}

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("out", "x")])


class GaussianInplaceGrad(GradOpDef, of=GaussianInplace, like="out@GRAD"):
    r"""$$x@GRAD = 0$$"""
