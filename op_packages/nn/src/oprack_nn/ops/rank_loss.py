"""rank_loss: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output


class RankLoss(OpDef, type="rank_loss"):
    r"""$$Out = \ln(1 + e^{Left - Right}) - Label (Left - Right)$$"""

    Label = Input("Probability that Left ranks above Right [N, 1].")
    Left = Input("Scores [N, 1].")
    Right = Input("Scores [N, 1].")
    Out = Output("Losses, shape of Label.")

    def infer_shape(ctx):
        ctx.same_dims("Left", "Right")
        ctx.same_dims("Left", "Label")
        ctx.set_dim("Out", ctx.dim("Label"))
        ctx.share_lod("Label", "Out")

    def make_grad(fwd):
        return GradOp(
            "rank_loss_grad",
            Label=fwd.input("Label"),
            Left=fwd.input("Left"),
            Right=fwd.input("Right"),
            Out_grad=fwd.output_grad("Out"),
            Left_grad=fwd.input_grad("Left"),
            Right_grad=fwd.input_grad("Right"),
            attrs=fwd.attrs,
        )


class RankLossGrad(GradOpDef, type="rank_loss_grad"):
    r"""$$Left@GRAD = Out@GRAD (\sigma(Left - Right) - Label)$$ and $$Right@GRAD = -Left@GRAD$$"""

    Label = Input("Probability that Left ranks above Right.")
    Left = Input("Scores.")
    Right = Input("Scores.")
    Out_grad = Input("Gradient of Out.")
    Left_grad = Output("Gradient of Left, its shape.")
    Right_grad = Output("Gradient of Right, its shape.")

    def infer_shape(ctx):
        for slot in ("Left", "Right"):
            ctx.set_dim(slot + "@GRAD", ctx.dim(slot))
            ctx.share_lod(slot, slot + "@GRAD")
