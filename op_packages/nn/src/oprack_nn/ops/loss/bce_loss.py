"""bce_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import elementwise


class BCELoss(OpDef, type="bce_loss"):
    r"""$$Out = -Label \ln X - (1 - Label) \ln(1 - X)$$ per element, logarithms bounded below by -100"""

    X = Input("Probabilities of any shape.")
    Label = Input("Targets in [0, 1], shape of X.")
    Out = Output("Losses, shape and LoD of X.")
    inplace = {"X": "Out"}
    sbp = elementwise(("X", "Label"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Label")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class BCELossGrad(GradOpDef, of=BCELoss, reads="X Label", grads_of="X"):
    r"""$$X@GRAD = Out@GRAD (X - Label) / \max(X (1 - X), 10^{-12})$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
