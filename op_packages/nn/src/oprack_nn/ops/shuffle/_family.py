"""Rules of shape that the shuffles share."""

from __future__ import annotations

from oprack.op import InferShapeContext

from oprack_nn.ops._layout import join_dims, split_dims


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
