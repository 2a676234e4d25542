"""affine_channel and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import GradOpDef, InferShapeContext, OpDef
from oprack.op.sbp import leading

from oprack_nn.ops._layout import is_channel_last, layout_attr


class AffineChannel(OpDef, type="affine_channel"):
    r"""$$Out = Scale_c X + Bias_c$$ per channel; a batch_norm with fixed statistics."""

    X = op.Input("[N, C] or [N, C, H, W], channels last with data_layout NHWC.")
    Scale = op.Input("[C].")
    Bias = op.Input("[C].")
    Out = op.Output("Shape of X.")
    data_layout = layout_attr("AnyLayout")
    inplace = {"X": "Out"}
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 2, 4)
        c = dims[-1] if is_channel_last(ctx.attr("data_layout")) else dims[1]
        for slot in ("Scale", "Bias"):
            got = ctx.dim(slot)
            ctx.require(
                len(got) == 1 and (c < 0 or got[0] < 0 or got[0] == c),
                f"{slot} has shape {list(got)}; expected [{c}], the channels of X {list(dims)}",
            )
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class AffineChannelGrad(GradOpDef, of=AffineChannel, reads="X? Scale", grads_of="X? Scale? Bias?"):
    """X@GRAD = Scale Out@GRAD; Scale@GRAD and Bias@GRAD are sums of X Out@GRAD and of Out@GRAD per channel."""

    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx: InferShapeContext) -> None:
        source = "X" if ctx.has_input("X") else "Out@GRAD"
        ctx.set_dim("X@GRAD", ctx.dim(source))
        ctx.share_lod(source, "X@GRAD")
        ctx.set_dim("Scale@GRAD", ctx.dim("Scale"))
        ctx.set_dim("Bias@GRAD", ctx.dim("Scale"))
