"""Arrays in the order of dims that kernels compute in, [N, C, *spatial], and back. `xp` is numpy or cupy."""

from __future__ import annotations

from typing import overload

from oprack.kernel import Array, ArrayModule
from oprack.tensor import ShapeOnly

from oprack_nn.ops._layout import is_channel_last


@overload
def to_channel_first(x: Array, layout: str) -> Array: ...
@overload
def to_channel_first(x: ShapeOnly, layout: str) -> ShapeOnly: ...
def to_channel_first(x: Array | ShapeOnly, layout: str) -> Array | ShapeOnly:
    """View of x as [N, C, *spatial]."""
    return x if not is_channel_last(layout) else x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def from_channel_first(x: Array, layout: str, xp: ArrayModule) -> Array:
    """Contiguous array in `layout` from [N, C, *spatial]."""
    return xp.ascontiguousarray(x.transpose(0, *range(2, x.ndim), 1) if is_channel_last(layout) else x)
