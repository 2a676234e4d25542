"""huber_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import elementwise
from oprack.types import AttrType


class HuberLoss(OpDef, type="huber_loss"):
    r"""$$Out = r^2 / 2$$ where $$|r| \le delta$$, else $$delta (|r| - delta / 2)$$, with $$r = Y - X$$"""

    X = Input("Predictions of any shape.")
    Y = Input("Targets, shape of X.")
    Out = Output("Losses, shape and LoD of X.")
    Residual = Output("Y - X, kept for the gradient.", intermediate=True)
    delta = Attr(REQUIRED, "Where the loss turns from quadratic to linear.", type=AttrType.FLOAT)
    sbp = elementwise(("X", "Y"), ("Out", "Residual"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Y")
        for slot in ("Out", "Residual"):
            ctx.set_dim(slot, ctx.dim("X"))
        ctx.share_lod("X", "Out")


class HuberLossGrad(GradOpDef, of=HuberLoss, reads="Residual", like="Residual"):
    r"""$$Y@GRAD = Out@GRAD \cdot \min(\max(Residual, -delta), delta)$$ and $$X@GRAD = -Y@GRAD$$"""
