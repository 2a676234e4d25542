"""modified_huber_loss and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class ModifiedHuberLoss(OpDef, type="modified_huber_loss"):
    r"""$$Out = \max(0, 1 - z)^2$$ where $$z = (2 Y - 1) X \ge -1$$, else $$Out = -4 z$$"""

    X = Input("Scores [N, 1].")
    Y = Input("0 or 1, shape of X.")
    IntermediateVal = Output("z, kept for the gradient.", intermediate=True)
    Out = Output("Losses, shape and LoD of X.")
    sbp = leading(("X", "Y"), ("Out", "IntermediateVal"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Y")
        for slot in ("IntermediateVal", "Out"):
            ctx.set_dim(slot, ctx.dim("X"))
        ctx.share_lod("X", "Out")


class ModifiedHuberLossGrad(
    GradOpDef, of=ModifiedHuberLoss, reads="Y IntermediateVal", grads_of="X", like="IntermediateVal"
):
    r"""$$X@GRAD = -2 \min(2, \max(0, 1 - z)) (2 Y - 1) Out@GRAD$$"""
