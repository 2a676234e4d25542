"""identity_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output

_REDUCTION = "0: sum. 1: mean. 2: none."


class IdentityLoss(OpDef, type="identity_loss"):
    r"""Marks a value as the loss: X itself, or its sum or mean"""

    X = Input("Tensor of any shape.")
    Out = Output("0-D, or shape of X with reduction 2.")
    reduction = Attr(1, _REDUCTION).between(0, 2)

    def infer_shape(ctx):
        if ctx.attr("reduction") == 2:
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")
        else:
            ctx.set_dim("Out", ())

    def make_grad(fwd):
        return GradOp(
            "identity_loss_grad",
            X=fwd.input("X"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class IdentityLossGrad(GradOpDef, type="identity_loss_grad"):
    """Out@GRAD spread over X, divided by the number of elements for a mean."""

    X = Input("Only its shape is read.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of X.")
    reduction = Attr(1, _REDUCTION)
    no_need_buffer_vars = ("X",)

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
