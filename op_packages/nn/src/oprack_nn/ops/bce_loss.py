"""bce_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output


class BCELoss(OpDef, type="bce_loss"):
    r"""$$Out = -Label \ln X - (1 - Label) \ln(1 - X)$$ per element, logarithms bounded below by -100"""

    X = Input("Probabilities of any shape.")
    Label = Input("Targets in [0, 1], shape of X.")
    Out = Output("Losses, shape and LoD of X.")
    inplace = {"X": "Out"}

    def infer_shape(ctx):
        ctx.same_dims("X", "Label")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "bce_loss_grad",
            X=fwd.input("X"),
            Label=fwd.input("Label"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class BCELossGrad(GradOpDef, type="bce_loss_grad"):
    r"""$$X@GRAD = Out@GRAD (X - Label) / \max(X (1 - X), 10^{-12})$$"""

    X = Input("Probabilities.")
    Label = Input("Targets.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of X.")
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
