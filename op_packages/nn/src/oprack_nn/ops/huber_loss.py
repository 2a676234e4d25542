"""huber_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, Input, OpDef, Output
from oprack.types import AttrType

_DELTA = Attr(REQUIRED, "Where the loss turns from quadratic to linear.", type=AttrType.FLOAT)


class HuberLoss(OpDef, type="huber_loss"):
    r"""$$Out = r^2 / 2$$ where $$|r| \le delta$$, else $$delta (|r| - delta / 2)$$, with $$r = Y - X$$"""

    X = Input("Predictions of any shape.")
    Y = Input("Targets, shape of X.")
    Out = Output("Losses, shape and LoD of X.")
    Residual = Output("Y - X, kept for the gradient.", intermediate=True)
    delta = _DELTA

    def infer_shape(ctx):
        ctx.same_dims("X", "Y")
        for slot in ("Out", "Residual"):
            ctx.set_dim(slot, ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "huber_loss_grad",
            Residual=fwd.output("Residual"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Y_grad=fwd.input_grad("Y"),
            attrs=fwd.attrs,
        )


class HuberLossGrad(GradOpDef, type="huber_loss_grad"):
    r"""$$Y@GRAD = Out@GRAD \cdot \min(\max(Residual, -delta), delta)$$ and $$X@GRAD = -Y@GRAD$$"""

    Residual = Input("Y - X.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of Residual.")
    Y_grad = Output("Gradient of Y, shape of Residual.")
    delta = _DELTA

    def infer_shape(ctx):
        for slot in ("X@GRAD", "Y@GRAD"):
            ctx.set_dim(slot, ctx.dim("Residual"))
            ctx.share_lod("Residual", slot)
