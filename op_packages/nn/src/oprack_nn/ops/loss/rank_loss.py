"""rank_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class RankLoss(OpDef, type="rank_loss"):
    r"""$$Out = \ln(1 + e^{Left - Right}) - Label (Left - Right)$$"""

    Label = Input("Probability that Left ranks above Right [N, 1].")
    Left = Input("Scores [N, 1].")
    Right = Input("Scores [N, 1].")
    Out = Output("Losses, shape of Label.")
    sbp = leading(("Label", "Left", "Right"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Left", "Right")
        ctx.same_dims("Left", "Label")
        ctx.set_dim("Out", ctx.dim("Label"))
        ctx.share_lod("Label", "Out")


class RankLossGrad(GradOpDef, of=RankLoss, reads="Label Left Right", grads_of="Left Right"):
    r"""$$Left@GRAD = Out@GRAD (\sigma(Left - Right) - Label)$$ and $$Right@GRAD = -Left@GRAD$$"""
