"""channel_shuffle: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, OpDef
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops.shuffle._family import regrouped


class ChannelShuffle(OpDef, type="channel_shuffle"):
    r"""$$Out_{n, j g + i} = X_{n, i C / g + j}$$: channels seen as [g, C / g] become [C / g, g], with g = groups."""

    X = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Out = op.Output("Shape of X.")
    groups = Attr(REQUIRED, "Number of groups.", type=AttrType.INT).at_least(1)
    data_format = layout_attr("NCHW")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        regrouped(ctx, "X", "Out", 3 if ctx.attr("data_format") == "NHWC" else 1, ctx.attr("groups"))


class ChannelShuffleGrad(GradOpDef, of=ChannelShuffle, linear=True):
    """The inverse rearrangement."""

    def infer_shape(ctx: InferShapeContext) -> None:
        regrouped(ctx, "Out@GRAD", "X@GRAD", 3 if ctx.attr("data_format") == "NHWC" else 1, ctx.attr("groups"))
