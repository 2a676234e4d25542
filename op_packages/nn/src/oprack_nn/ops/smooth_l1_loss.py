"""smooth_l1_loss (Paddle 1.x): all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading

_INSIDE = "Factor of the difference, shape of X."
_OUTSIDE = "Factor of the loss, shape of X."


class SmoothL1Loss(OpDef, type="smooth_l1_loss"):
    r"""With $$d = InsideWeight (X - Y)$$ the sum over a row of $$OutsideWeight \cdot l(d)$$, where
    $$l(d) = (sigma \cdot d)^2 / 2$$ for $$|d| < 1 / sigma^2$$, else $$|d| - 1 / (2 sigma^2)$$"""

    X = Input("Predictions [N, ...].")
    Y = Input("Targets, shape of X.")
    InsideWeight = Input(_INSIDE, dispensable=True)
    OutsideWeight = Input(_OUTSIDE, dispensable=True)
    Diff = Output("d, kept for the gradient.", intermediate=True)
    Out = Output("Losses [N, 1].")
    sigma = Attr(1.0, "The loss is quadratic below 1 / sigma^2.")
    sbp = leading(("X", "Y", "InsideWeight", "OutsideWeight"), ("Diff", "Out"))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 2, f"X has shape {list(dims)}; expected rank 2 or more")
        ctx.same_dims("X", "Y")
        for slot in ("InsideWeight", "OutsideWeight"):
            if ctx.has_input(slot):
                ctx.same_dims("X", slot)
        ctx.set_dim("Diff", dims)
        ctx.set_dim("Out", (dims[0], 1))


class SmoothL1LossGrad(
    GradOpDef, of=SmoothL1Loss, reads="Diff InsideWeight OutsideWeight Out@GRAD", grads_of="X Y", like="Diff", lod=False
):
    r"""$$X@GRAD = Out@GRAD \cdot InsideWeight \cdot OutsideWeight \cdot l'(Diff)$$ and $$Y@GRAD = -X@GRAD$$"""
