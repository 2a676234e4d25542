"""hinge_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import elementwise


class HingeLoss(OpDef, type="hinge_loss"):
    r"""$$Loss = \max(0, 1 - (2 Labels - 1) Logits)$$"""

    Logits = Input("Scores [N, 1].")
    Labels = Input("0 or 1, shape of Logits.")
    Loss = Output("Losses, shape and LoD of Logits.")
    sbp = elementwise(("Logits", "Labels"), ("Loss",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Logits", "Labels")
        ctx.set_dim("Loss", ctx.dim("Logits"))
        ctx.share_lod("Logits", "Loss")


class HingeLossGrad(GradOpDef, of=HingeLoss, reads="Logits Labels", grads_of="Logits"):
    r"""$$Logits@GRAD = -Loss@GRAD (2 Labels - 1)$$ where the loss is positive, else 0"""
