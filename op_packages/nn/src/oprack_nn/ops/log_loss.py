"""log_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, Input, OpDef, Output
from oprack.types import AttrType

_EPSILON = Attr(REQUIRED, "Added inside both logarithms.", type=AttrType.FLOAT)


class LogLoss(OpDef, type="log_loss"):
    r"""$$Loss = -Labels \ln(Predicted + epsilon) - (1 - Labels) \ln(1 - Predicted + epsilon)$$"""

    Predicted = Input("Probabilities [N, 1].")
    Labels = Input("0 or 1 [N, 1].")
    Loss = Output("Losses [N, 1], LoD of Predicted.")
    epsilon = _EPSILON

    def infer_shape(ctx):
        ctx.same_dims("Predicted", "Labels")
        ctx.set_dim("Loss", ctx.dim("Predicted"))
        ctx.share_lod("Predicted", "Loss")

    def make_grad(fwd):
        return GradOp(
            "log_loss_grad",
            Predicted=fwd.input("Predicted"),
            Labels=fwd.input("Labels"),
            Loss_grad=fwd.output_grad("Loss"),
            Predicted_grad=fwd.input_grad("Predicted"),
            attrs=fwd.attrs,
        )


class LogLossGrad(GradOpDef, type="log_loss_grad"):
    r"""$$Predicted@GRAD = Loss@GRAD ((1 - Labels) / (1 - Predicted + epsilon) - Labels / (Predicted + epsilon))$$"""

    Predicted = Input("Probabilities.")
    Labels = Input("0 or 1.")
    Loss_grad = Input("Gradient of Loss.")
    Predicted_grad = Output("Gradient of Predicted, its shape.")
    epsilon = _EPSILON

    def infer_shape(ctx):
        ctx.set_dim("Predicted@GRAD", ctx.dim("Predicted"))
        ctx.share_lod("Predicted", "Predicted@GRAD")
