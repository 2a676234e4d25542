"""smooth_l1_loss (Paddle 1.x): all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output

_SIGMA = Attr(1.0, "The loss is quadratic below 1 / sigma^2.")
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
    sigma = _SIGMA

    def infer_shape(ctx):
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 2, f"X has shape {list(dims)}; expected rank 2 or more")
        ctx.same_dims("X", "Y")
        for slot in ("InsideWeight", "OutsideWeight"):
            if ctx.has_input(slot):
                ctx.same_dims("X", slot)
        ctx.set_dim("Diff", dims)
        ctx.set_dim("Out", (dims[0], 1))

    def make_grad(fwd):
        return GradOp(
            "smooth_l1_loss_grad",
            InsideWeight=fwd.input("InsideWeight"),
            OutsideWeight=fwd.input("OutsideWeight"),
            Diff=fwd.output("Diff"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Y_grad=fwd.input_grad("Y"),
            attrs=fwd.attrs,
        )


class SmoothL1LossGrad(GradOpDef, type="smooth_l1_loss_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot InsideWeight \cdot OutsideWeight \cdot l'(Diff)$$ and $$Y@GRAD = -X@GRAD$$"""

    Diff = Input("d of the forward op.")
    InsideWeight = Input(_INSIDE, dispensable=True)
    OutsideWeight = Input(_OUTSIDE, dispensable=True)
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of Diff.")
    Y_grad = Output("Gradient of Y, shape of Diff.")
    sigma = _SIGMA

    def infer_shape(ctx):
        for slot in ("X@GRAD", "Y@GRAD"):
            ctx.set_dim(slot, ctx.dim("Diff"))
