"""The order of an image's dims: channels first or last."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import Attr

LAYOUTS = ("NCHW", "NHWC", "NCDHW", "NDHWC", "AnyLayout")


def is_channel_last(layout: str) -> bool:
    """Whether the channels are the last dim: NHWC, NDHWC, NLC ..."""
    return layout in ("NHWC", "NDHWC", "NWC", "NLC")


def split_dims(dims: Sequence[int], layout: str) -> tuple[int, int, tuple[int, ...]]:
    """(N, C, spatial dims) of a shape."""
    if is_channel_last(layout):
        return dims[0], dims[-1], tuple(dims[1:-1])
    return dims[0], dims[1], tuple(dims[2:])


def join_dims(n: int, c: int, spatial: Sequence[int], layout: str) -> tuple[int, ...]:
    """The shape made of N, C and spatial dims."""
    return (n, *spatial, c) if is_channel_last(layout) else (n, c, *spatial)


def layout_attr(default: str) -> Attr:
    return Attr(default, "Order of dims: channels first (NCHW, NCDHW) or last (NHWC, NDHWC).").in_set(LAYOUTS)
