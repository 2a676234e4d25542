"""margin_rank_loss (Paddle 1.x): all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output

_MARGIN = Attr(0.0, "Gap between the scores below which there is a loss.")


class MarginRankLoss(OpDef, type="margin_rank_loss"):
    r"""$$Out = \max(0, -Label (X1 - X2) + margin)$$"""

    X1 = Input("Scores [N, 1].")
    X2 = Input("Scores [N, 1].")
    Label = Input("1 when X1 should rank above X2, else -1 [N, 1].")
    Activated = Output("1 where the loss is positive, else 0.", intermediate=True)
    Out = Output("Losses [N, 1].")
    margin = _MARGIN

    def infer_shape(ctx):
        ctx.same_dims("X1", "X2")
        ctx.same_dims("X1", "Label")
        for slot in ("Activated", "Out"):
            ctx.set_dim(slot, ctx.dim("Label"))

    def make_grad(fwd):
        return GradOp(
            "margin_rank_loss_grad",
            Label=fwd.input("Label"),
            Activated=fwd.output("Activated"),
            Out_grad=fwd.output_grad("Out"),
            X1_grad=fwd.input_grad("X1"),
            X2_grad=fwd.input_grad("X2"),
            attrs=fwd.attrs,
        )


class MarginRankLossGrad(GradOpDef, type="margin_rank_loss_grad"):
    r"""$$X2@GRAD = Out@GRAD \cdot Activated \cdot Label$$ and $$X1@GRAD = -X2@GRAD$$"""

    Activated = Input("1 where the loss is positive.")
    Label = Input("1 or -1.")
    Out_grad = Input("Gradient of Out.")
    X1_grad = Output("Gradient of X1, shape of Label.")
    X2_grad = Output("Gradient of X2, shape of Label.")
    margin = _MARGIN

    def infer_shape(ctx):
        for slot in ("X1@GRAD", "X2@GRAD"):
            ctx.set_dim(slot, ctx.dim("Label"))
