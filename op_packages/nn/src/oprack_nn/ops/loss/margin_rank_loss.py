"""margin_rank_loss (Paddle 1.x): all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class MarginRankLoss(OpDef, type="margin_rank_loss"):
    r"""$$Out = \max(0, -Label (X1 - X2) + margin)$$"""

    X1 = Input("Scores [N, 1].")
    X2 = Input("Scores [N, 1].")
    Label = Input("1 when X1 should rank above X2, else -1 [N, 1].")
    Activated = Output("1 where the loss is positive, else 0.", intermediate=True)
    Out = Output("Losses [N, 1].")
    margin = Attr(0.0, "Gap between the scores below which there is a loss.")
    sbp = leading(("X1", "X2", "Label"), ("Out", "Activated"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X1", "X2")
        ctx.same_dims("X1", "Label")
        for slot in ("Activated", "Out"):
            ctx.set_dim(slot, ctx.dim("Label"))


class MarginRankLossGrad(
    GradOpDef, of=MarginRankLoss, reads="Activated Label Out@GRAD", grads_of="X1 X2", like="Label", lod=False
):
    r"""$$X2@GRAD = Out@GRAD \cdot Activated \cdot Label$$ and $$X1@GRAD = -X2@GRAD$$"""
