"""kldiv_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output

_REDUCTION = "none, batchmean (sum / first dim), mean or sum."


class KLDivLoss(OpDef, type="kldiv_loss"):
    r"""$$Loss = Target (\ln Target - X)$$ where $$Target > 0$$, else 0; then reduced. X holds logarithms."""

    X = Input("Logarithms of probabilities, any shape.")
    Target = Input("Probabilities, shape of X.")
    Loss = Output("Shape of X, or 0-D when reduced.")
    reduction = Attr("mean", _REDUCTION).in_set(("none", "batchmean", "mean", "sum"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Target")
        ctx.set_dim("Loss", ctx.dim("X") if ctx.attr("reduction") == "none" else ())


class KLDivLossGrad(GradOpDef, of=KLDivLoss, reads="Target", shape_of="X", grads_of="X"):
    r"""$$X@GRAD = -Target \cdot Loss@GRAD$$ where $$Target > 0$$, divided as the loss was"""
