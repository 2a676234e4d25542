"""kldiv_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output

_REDUCTION = "none, batchmean (sum / first dim), mean or sum."


class KLDivLoss(OpDef, type="kldiv_loss"):
    r"""$$Loss = Target (\ln Target - X)$$ where $$Target > 0$$, else 0; then reduced. X holds logarithms."""

    X = Input("Logarithms of probabilities, any shape.")
    Target = Input("Probabilities, shape of X.")
    Loss = Output("Shape of X, or 0-D when reduced.")
    reduction = Attr("mean", _REDUCTION).in_set(("none", "batchmean", "mean", "sum"))

    def infer_shape(ctx):
        ctx.same_dims("X", "Target")
        ctx.set_dim("Loss", ctx.dim("X") if ctx.attr("reduction") == "none" else ())

    def make_grad(fwd):
        return GradOp(
            "kldiv_loss_grad",
            X=fwd.input("X"),
            Target=fwd.input("Target"),
            Loss_grad=fwd.output_grad("Loss"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class KLDivLossGrad(GradOpDef, type="kldiv_loss_grad"):
    r"""$$X@GRAD = -Target \cdot Loss@GRAD$$ where $$Target > 0$$, divided as the loss was"""

    X = Input("Only its shape is read.")
    Target = Input("Probabilities.")
    Loss_grad = Input("Gradient of Loss.")
    X_grad = Output("Gradient of X, shape of X.")
    reduction = Attr("mean", _REDUCTION)
    no_need_buffer_vars = ("X",)

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
