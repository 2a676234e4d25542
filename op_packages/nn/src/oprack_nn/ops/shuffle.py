"""Definitions of rearrangements of channels and pixels."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_nn.ops._layout import join_dims, layout_attr, split_dims


# Rules of shape that the shuffles share.
def upscaled(ctx: InferShapeContext, source: str, target: str, r: int) -> None:
    """[C r r, H, W] -> [C, H r, W r]."""
    dims = ctx.require_rank(source, 4)
    n, c, (h, w) = split_dims(dims, ctx.attr("data_format"))
    ctx.require(
        c < 0 or c % (r * r) == 0,
        f"{source} {list(dims)} has {c} channels; expected a multiple of {r} x {r}, the factor squared",
    )
    out = join_dims(n, c if c < 0 else c // (r * r), [x if x < 0 else x * r for x in (h, w)], ctx.attr("data_format"))
    ctx.set_dim(target, out)


def downscaled(ctx: InferShapeContext, source: str, target: str, r: int) -> None:
    """[C, H r, W r] -> [C r r, H, W]."""
    dims = ctx.require_rank(source, 4)
    n, c, (h, w) = split_dims(dims, ctx.attr("data_format"))
    ctx.require(
        all(x < 0 or x % r == 0 for x in (h, w)),
        f"{source} {list(dims)} is {h} x {w}; expected multiples of {r}, the factor",
    )
    out = join_dims(n, c if c < 0 else c * r * r, [x if x < 0 else x // r for x in (h, w)], ctx.attr("data_format"))
    ctx.set_dim(target, out)


def regrouped(ctx: InferShapeContext, source: str, target: str, channel: int, groups: int) -> None:
    """The dim `channel` holds a multiple of `groups`; the shape stays."""
    dims = ctx.require_rank(source, 4)
    c = dims[channel]
    ctx.require(
        c < 0 or c % groups == 0,
        f"{source} {list(dims)} has {c} channels, which {groups} groups do not divide",
    )
    ctx.set_dim(target, dims)


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


class PixelShuffle(OpDef, type="pixel_shuffle"):
    r"""$$Out_{n,c,yr+i,xr+j} = X_{n,c r^2 + i r + j,y,x}$$"""

    X = op.Input("[N, C r r, H, W], or [N, H, W, C r r] with data_format NHWC.")
    Out = op.Output("[N, C, H r, W r] in the layout of X.")
    upscale_factor = Attr(1, "Growth r of H and W.").at_least(1)
    data_format = layout_attr("NCHW")
    versions = OpVersion("pixel_shuffle").checkpoint("New attribute data_format.", ("new_attr", "data_format", "NCHW"))
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        upscaled(ctx, "X", "Out", ctx.attr("upscale_factor"))


class PixelShuffleGrad(GradOpDef, of=PixelShuffle, linear=True):
    """The inverse rearrangement."""

    def infer_shape(ctx: InferShapeContext) -> None:
        downscaled(ctx, "Out@GRAD", "X@GRAD", ctx.attr("upscale_factor"))


class PixelUnshuffle(OpDef, type="pixel_unshuffle"):
    r"""The inverse of pixel_shuffle: $$Out_{n,c r^2 + i r + j,y,x} = X_{n,c,yr+i,xr+j}$$"""

    X = op.Input("[N, C, H r, W r], or [N, H r, W r, C] with data_format NHWC.")
    Out = op.Output("[N, C r r, H, W] in the layout of X.")
    downscale_factor = Attr(1, "Factor r that H and W shrink by.").at_least(1)
    data_format = layout_attr("NCHW")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        downscaled(ctx, "X", "Out", ctx.attr("downscale_factor"))


class PixelUnshuffleGrad(GradOpDef, of=PixelUnshuffle, linear=True):
    """The inverse rearrangement."""

    def infer_shape(ctx: InferShapeContext) -> None:
        upscaled(ctx, "Out@GRAD", "X@GRAD", ctx.attr("downscale_factor"))


class ShuffleChannel(OpDef, type="shuffle_channel"):
    r"""$$Out_{n, j g + i} = X_{n, i C / g + j}$$ with g = group: channel_shuffle for [N, C, H, W] only."""

    X = op.Input("[N, C, H, W].")
    Out = op.Output("Shape of X.")
    group = Attr(1, "Number of groups.").at_least(1)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        regrouped(ctx, "X", "Out", 1, ctx.attr("group"))


class ShuffleChannelGrad(GradOpDef, of=ShuffleChannel, like="Out@GRAD", lod=False):
    """The inverse rearrangement."""


# space_to_depth (Paddle 1.x) and its gradient: all of the ops but their kernels.
class SpaceToDepth(OpDef, type="space_to_depth"):
    r"""$$Out.flat = (Z_{n,c,y,i,x,j}).flat$$ with $$Z_{n,c,y,i,x,j} = X_{n, (i b + j) C' + c, y, x}$$

    b = blocksize and C' = C / b^2. The order is that of darknet's reorg layer, which unfolds channels into an image of
    b H x b W and reads its elements as an image of H / b x W / b; pixel_unshuffle keeps each channel's pixels together.
    """

    X = Input("[N, C, H, W]; C is a multiple of blocksize squared, H and W of blocksize.")
    Out = Output("[N, C b b, H / b, W / b].")
    blocksize = Attr(REQUIRED, "The factor b by which H and W shrink.", type=AttrType.LONG).greater_than(1)

    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        n, c, h, w = ctx.require_rank("X", 4)
        b = ctx.attr("blocksize")
        ctx.require(
            (c < 0 or c % (b * b) == 0) and all(x < 0 or x % b == 0 for x in (h, w)),
            f"X has shape {[n, c, h, w]}; expected channels divisible by {b * b}, and height and width by {b}",
        )
        ctx.set_dim("Out", (n, c if c < 0 else c * b * b, *(x if x < 0 else x // b for x in (h, w))))


class SpaceToDepthGrad(GradOpDef, of=SpaceToDepth, shape_of="X"):
    """Out@GRAD with each element where it came from."""


def _infer(ctx: InferShapeContext, source: str, target: str) -> None:
    dims = ctx.require_rank(source, 4)
    ctx.require(
        dims[0] < 0 or dims[0] % ctx.attr("seg_num") == 0,
        f"{source} {list(dims)} has a batch of {dims[0]}; expected a multiple of seg_num {ctx.attr('seg_num')}",
    )
    ctx.set_dim(target, dims)


class TemporalShift(OpDef, type="temporal_shift"):
    r"""$$Out_{t,c} = X_{t-1,c}$$ for $$c < C r$$, $$X_{t+1,c}$$ for $$C r \le c < 2 C r$$, else $$X_{t,c}$$, with r =
    shift_ratio.

    Zeros come in at the ends of each video (TSM, Lin et al., 2019).
    """

    X = op.Input("[N T, C, H, W], or [N T, H, W, C] with data_format NHWC.")
    Out = op.Output("Shape of X.")
    seg_num = Attr(REQUIRED, "Frames T of a video; the batch is N T.", type=AttrType.INT).at_least(1)
    shift_ratio = Attr(0.25, "Share of the channels that moves each way.").between(0.0, 0.5)
    data_format = layout_attr("NCHW")

    def infer_shape(ctx: InferShapeContext) -> None:
        _infer(ctx, "X", "Out")
        ctx.share_lod("X", "Out")


class TemporalShiftGrad(GradOpDef, of=TemporalShift, linear=True):
    """The shifts the other way."""

    def infer_shape(ctx: InferShapeContext) -> None:
        _infer(ctx, "Out@GRAD", "X@GRAD")
