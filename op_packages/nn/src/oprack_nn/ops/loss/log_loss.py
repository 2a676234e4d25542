"""log_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import elementwise
from oprack.types import AttrType


class LogLoss(OpDef, type="log_loss"):
    r"""$$Loss = -Labels \ln(Predicted + epsilon) - (1 - Labels) \ln(1 - Predicted + epsilon)$$"""

    Predicted = Input("Probabilities [N, 1].")
    Labels = Input("0 or 1 [N, 1].")
    Loss = Output("Losses [N, 1], LoD of Predicted.")
    epsilon = Attr(REQUIRED, "Added inside both logarithms.", type=AttrType.FLOAT)
    sbp = elementwise(("Predicted", "Labels"), ("Loss",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Predicted", "Labels")
        ctx.set_dim("Loss", ctx.dim("Predicted"))
        ctx.share_lod("Predicted", "Loss")


class LogLossGrad(GradOpDef, of=LogLoss, reads="Predicted Labels", grads_of="Predicted"):
    r"""$$Predicted@GRAD = Loss@GRAD ((1 - Labels) / (1 - Predicted + epsilon) - Labels / (Predicted + epsilon))$$"""
