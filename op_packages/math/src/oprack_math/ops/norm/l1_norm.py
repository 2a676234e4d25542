"""l1_norm and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output


class L1Norm(OpDef, type="l1_norm"):
    r"""$$Out = \sum |X|$$ over all elements."""

    X = Input("Tensor of any shape.")
    Out = Output("0-D; no LoD.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ())


class L1NormGrad(GradOpDef, of=L1Norm, reads="X"):
    r"""$$X@GRAD = Out@GRAD \cdot \operatorname{sign}(X)$$"""
