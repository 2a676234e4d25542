"""pixel_shuffle, pixel_unshuffle, channel_shuffle, shuffle_channel and their gradients: all but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, GradOpDef, OpDef, OpVersion
from oprack.types import AttrType

from oprack_nn.ops._conv import join_dims, layout_attr, split_dims


def _upscaled(ctx, source, target, r):
    """[C r r, H, W] -> [C, H r, W r]."""
    dims = ctx.require_rank(source, 4)
    n, c, (h, w) = split_dims(dims, ctx.attr("data_format"))
    ctx.require(
        c < 0 or c % (r * r) == 0,
        f"{source} {list(dims)} has {c} channels; expected a multiple of {r} x {r}, the factor squared",
    )
    out = join_dims(n, c if c < 0 else c // (r * r), [x if x < 0 else x * r for x in (h, w)], ctx.attr("data_format"))
    ctx.set_dim(target, out)


def _downscaled(ctx, source, target, r):
    """[C, H r, W r] -> [C r r, H, W]."""
    dims = ctx.require_rank(source, 4)
    n, c, (h, w) = split_dims(dims, ctx.attr("data_format"))
    ctx.require(
        all(x < 0 or x % r == 0 for x in (h, w)),
        f"{source} {list(dims)} is {h} x {w}; expected multiples of {r}, the factor",
    )
    out = join_dims(n, c if c < 0 else c * r * r, [x if x < 0 else x // r for x in (h, w)], ctx.attr("data_format"))
    ctx.set_dim(target, out)


def _regrouped(ctx, source, target, channel, groups):
    dims = ctx.require_rank(source, 4)
    c = dims[channel]
    ctx.require(
        c < 0 or c % groups == 0,
        f"{source} {list(dims)} has {c} channels, which {groups} groups do not divide",
    )
    ctx.set_dim(target, dims)


class PixelShuffle(OpDef, type="pixel_shuffle"):
    r"""$$Out_{n,c,yr+i,xr+j} = X_{n,c r^2 + i r + j,y,x}$$"""

    X = op.Input("[N, C r r, H, W], or [N, H, W, C r r] with data_format NHWC.")
    Out = op.Output("[N, C, H r, W r] in the layout of X.")
    upscale_factor = Attr(1, "Growth r of H and W.").at_least(1)
    data_format = layout_attr("NCHW")
    versions = OpVersion("pixel_shuffle").checkpoint("New attribute data_format.", ("new_attr", "data_format", "NCHW"))

    def infer_shape(ctx):
        _upscaled(ctx, "X", "Out", ctx.attr("upscale_factor"))


class PixelShuffleGrad(GradOpDef, of=PixelShuffle, linear=True):
    """The inverse rearrangement."""

    def infer_shape(ctx):
        _downscaled(ctx, "Out@GRAD", "X@GRAD", ctx.attr("upscale_factor"))


class PixelUnshuffle(OpDef, type="pixel_unshuffle"):
    r"""The inverse of pixel_shuffle: $$Out_{n,c r^2 + i r + j,y,x} = X_{n,c,yr+i,xr+j}$$"""

    X = op.Input("[N, C, H r, W r], or [N, H r, W r, C] with data_format NHWC.")
    Out = op.Output("[N, C r r, H, W] in the layout of X.")
    downscale_factor = Attr(1, "Factor r that H and W shrink by.").at_least(1)
    data_format = layout_attr("NCHW")

    def infer_shape(ctx):
        _downscaled(ctx, "X", "Out", ctx.attr("downscale_factor"))


class PixelUnshuffleGrad(GradOpDef, of=PixelUnshuffle, linear=True):
    """The inverse rearrangement."""

    def infer_shape(ctx):
        _upscaled(ctx, "Out@GRAD", "X@GRAD", ctx.attr("downscale_factor"))


class ChannelShuffle(OpDef, type="channel_shuffle"):
    """Channels seen as [groups, C / groups] become [C / groups, groups]."""

    X = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Out = op.Output("Shape of X.")
    groups = Attr(REQUIRED, "Number of groups.", type=AttrType.INT).at_least(1)
    data_format = layout_attr("NCHW")

    def infer_shape(ctx):
        _regrouped(ctx, "X", "Out", 3 if ctx.attr("data_format") == "NHWC" else 1, ctx.attr("groups"))


class ChannelShuffleGrad(GradOpDef, of=ChannelShuffle, linear=True):
    """The inverse rearrangement."""

    def infer_shape(ctx):
        _regrouped(ctx, "Out@GRAD", "X@GRAD", 3 if ctx.attr("data_format") == "NHWC" else 1, ctx.attr("groups"))


class ShuffleChannel(OpDef, type="shuffle_channel"):
    """channel_shuffle for [N, C, H, W] only."""

    X = op.Input("[N, C, H, W].")
    Out = op.Output("Shape of X.")
    group = Attr(1, "Number of groups.").at_least(1)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)

    def infer_shape(ctx):
        _regrouped(ctx, "X", "Out", 1, ctx.attr("group"))


class ShuffleChannelGrad(GradOpDef, of=ShuffleChannel, like="Out@GRAD", lod=False):
    """The inverse rearrangement."""
