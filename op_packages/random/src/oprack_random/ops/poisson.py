"""poisson and its gradient."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output
from oprack.op.families import like

from oprack_random.ops._draw_like import ZeroGrad


class Poisson(OpDef, type="poisson"):
    r"""$$P(Out = k) = X^k e^{-X} / k!$$"""

    X = Input("Rates of at least 0, of any shape.")
    Out = Output("Shape, type and LoD of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out", "X")])


class PoissonGrad(ZeroGrad, of=Poisson):
    r"""$$X@GRAD = 0$$"""
