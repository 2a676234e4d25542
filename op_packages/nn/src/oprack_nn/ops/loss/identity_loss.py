"""identity_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output

_REDUCTION = "0: sum. 1: mean. 2: none."


class IdentityLoss(OpDef, type="identity_loss"):
    r"""$$Out = \sum_i X_i, \; \frac{1}{n} \sum_i X_i$$ or X itself, as reduction is 0, 1 or 2: marks a value as the
    loss.
    """

    X = Input("Tensor of any shape.")
    Out = Output("0-D, or shape of X with reduction 2.")
    reduction = Attr(1, _REDUCTION).between(0, 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.attr("reduction") == 2:
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")
        else:
            ctx.set_dim("Out", ())


class IdentityLossGrad(GradOpDef, of=IdentityLoss, shape_of="X"):
    """Out@GRAD spread over X, divided by the number of elements for a mean."""
