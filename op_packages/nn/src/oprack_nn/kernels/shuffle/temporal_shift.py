"""Kernels of temporal_shift and its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_nn.ops._layout import is_channel_last

_PLACES = ("cpu", "cuda")


def _shift(x: Array, seg_num: int, shift_ratio: float, data_format: str, later: bool, xp: ArrayModule) -> Array:
    """Move the first channels by one frame (to later frames if `later`), the next ones the other way."""
    axis = 4 if is_channel_last(data_format) else 2
    frames = x.reshape(-1, seg_num, *x.shape[1:])
    channels = frames.shape[axis]
    # Paddle multiplies in float32, which decides what the product is truncated to
    first, second = (int(np.float32(channels) * np.float32(r * shift_ratio)) for r in (1, 2))

    def part(time: slice, channel: slice) -> tuple[slice, ...]:
        return (slice(None), time, *(slice(None),) * (axis - 2), channel)

    head, tail = slice(1, None), slice(None, -1)
    there, here = (head, tail) if later else (tail, head)
    y = xp.zeros_like(frames)
    moved, back, rest = slice(0, first), slice(first, second), slice(second, None)
    y[part(there, moved)] = frames[part(here, moved)]
    y[part(here, back)] = frames[part(there, back)]
    y[part(slice(None), rest)] = frames[part(slice(None), rest)]
    return y.reshape(x.shape)


@kernel("temporal_shift", place=_PLACES, dtypes=FLOATS)
def temporal_shift(X: Array, *, seg_num: int, shift_ratio: float, data_format: str, xp: ArrayModule) -> Array:
    return _shift(X, seg_num, shift_ratio, data_format, True, xp)


@kernel("temporal_shift_grad", place=_PLACES, dtypes=FLOATS)
def temporal_shift_grad(
    Out_grad: Array, *, seg_num: int, shift_ratio: float, data_format: str, xp: ArrayModule
) -> Array:
    return _shift(Out_grad, seg_num, shift_ratio, data_format, False, xp)
