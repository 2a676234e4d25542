"""What pad2d and pad3d share: padding the spatial dims in one of several modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.op import InferShapeContext
from oprack.op.windows import Pads

from oprack_nn.ops._layout import is_channel_last, join_dims, split_dims


def pairs_2d(paddings: Sequence[int]) -> Pads:
    """(before, after) of H and W from [top, bottom, left, right]."""
    return [(paddings[0], paddings[1]), (paddings[2], paddings[3])]


def pairs_3d(paddings: Sequence[int]) -> Pads:
    """(before, after) of D, H and W from [left, right, top, bottom, front, back]."""
    return [(paddings[4], paddings[5]), (paddings[2], paddings[3]), (paddings[0], paddings[1])]


def infer_padded(ctx: InferShapeContext, source: str, target: str, pairs: Callable[..., Any], rank: int) -> None:
    """Dims of `target` from those of `source`; the tensor Paddings goes before the attribute."""
    dims = ctx.require_rank(source, rank + 2)
    layout, mode = ctx.attr("data_format"), ctx.attr("mode")
    n, c, spatial = split_dims(dims, layout)
    value = ctx.value("Paddings") if ctx.has_input("Paddings") else None
    if ctx.has_input("Paddings") and value is None:
        ctx.set_dim(target, join_dims(n, c, (-1,) * rank, layout))
        ctx.share_lod(source, target)
        return
    paddings = ctx.attr("paddings") if value is None else [int(p) for p in value.reshape(-1)]
    ctx.require(len(paddings) == 2 * rank, f"paddings is {list(paddings)}; expected {2 * rank} numbers")
    for x, pair in zip(spatial, pairs(paddings), strict=True):
        limit = {"reflect": x - 1, "circular": x}.get(mode)
        ctx.require(
            min(pair) >= 0 and (limit is None or x < 0 or max(pair) <= limit),
            f"paddings {list(paddings)} with mode {mode} on {source} {list(dims)}; expected 0 or more, and at most the "
            "dim less 1 for reflect, the dim for circular",
        )
    out = tuple(x if x < 0 else x + a + b for x, (a, b) in zip(spatial, pairs(paddings), strict=True))
    ctx.set_dim(target, join_dims(n, c, out, layout))
    ctx.share_lod(source, target)


def first_spatial_axis(layout: str) -> int:
    """Position of the first spatial dim."""
    return 1 if is_channel_last(layout) else 2
