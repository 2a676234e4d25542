"""hinge_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output


class HingeLoss(OpDef, type="hinge_loss"):
    r"""$$Loss = \max(0, 1 - (2 Labels - 1) Logits)$$"""

    Logits = Input("Scores [N, 1].")
    Labels = Input("0 or 1, shape of Logits.")
    Loss = Output("Losses, shape and LoD of Logits.")

    def infer_shape(ctx):
        ctx.same_dims("Logits", "Labels")
        ctx.set_dim("Loss", ctx.dim("Logits"))
        ctx.share_lod("Logits", "Loss")

    def make_grad(fwd):
        return GradOp(
            "hinge_loss_grad",
            Logits=fwd.input("Logits"),
            Labels=fwd.input("Labels"),
            Loss_grad=fwd.output_grad("Loss"),
            Logits_grad=fwd.input_grad("Logits"),
            attrs=fwd.attrs,
        )


class HingeLossGrad(GradOpDef, type="hinge_loss_grad"):
    r"""$$Logits@GRAD = -Loss@GRAD (2 Labels - 1)$$ where the loss is positive, else 0"""

    Logits = Input("Scores.")
    Labels = Input("0 or 1.")
    Loss_grad = Input("Gradient of Loss.")
    Logits_grad = Output("Gradient of Logits, its shape.")

    def infer_shape(ctx):
        ctx.set_dim("Logits@GRAD", ctx.dim("Logits"))
        ctx.share_lod("Logits", "Logits@GRAD")
