"""squared_l2_norm and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import SbpContext, Signature, factors, letters


class SquaredL2Norm(OpDef, type="squared_l2_norm"):
    r"""$$Out = \sum X^2$$ over all elements."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape [1]; no LoD.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        return factors({"X": letters(len(ctx.dim("X")))}, {"Out": [None]})

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (1,))


class SquaredL2NormGrad(GradOpDef, of=SquaredL2Norm, reads="X"):
    r"""$$X@GRAD = 2\,Out@GRAD \cdot X$$"""
