"""Kernels of rearrangements of channels and pixels."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly
from oprack.types import ALL_DTYPES, FLOATS

from oprack_nn.ops._layout import is_channel_last

# shared ---------------------------------------------------------------------------------------------------------------
# Channels to pixels, back, and channels among themselves.
PLACES = ("cpu", "cuda")


def upscaled(x: Array, r: int, layout: str, xp: ArrayModule) -> Array:
    """[C r r, H, W] -> [C, H r, W r]."""
    if is_channel_last(layout):
        n, h, w, c = x.shape
        split = x.reshape(n, h, w, c // (r * r), r, r).transpose(0, 1, 4, 2, 5, 3)
        return xp.ascontiguousarray(split).reshape(n, h * r, w * r, c // (r * r))
    n, c, h, w = x.shape
    split = x.reshape(n, c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    return xp.ascontiguousarray(split).reshape(n, c // (r * r), h * r, w * r)


def downscaled(x: Array, r: int, layout: str, xp: ArrayModule) -> Array:
    """[C, H r, W r] -> [C r r, H, W]."""
    if is_channel_last(layout):
        n, h, w, c = x.shape
        split = x.reshape(n, h // r, r, w // r, r, c).transpose(0, 1, 3, 5, 2, 4)
        return xp.ascontiguousarray(split).reshape(n, h // r, w // r, c * r * r)
    n, c, h, w = x.shape
    split = x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return xp.ascontiguousarray(split).reshape(n, c * r * r, h // r, w // r)


def regrouped(x: Array, rows: int, layout: str) -> Array:
    """Channels as [rows, C / rows], transposed; always a copy."""
    if is_channel_last(layout):
        return x.reshape(*x.shape[:-1], rows, x.shape[-1] // rows).swapaxes(-1, -2).copy().reshape(x.shape)
    return x.reshape(x.shape[0], rows, x.shape[1] // rows, *x.shape[2:]).swapaxes(1, 2).copy().reshape(x.shape)


# channel_shuffle ------------------------------------------------------------------------------------------------------
@kernel("channel_shuffle", place=PLACES, dtypes=ALL_DTYPES)
def channel_shuffle(X: Array, *, groups: int, data_format: str) -> Array:
    return regrouped(X, groups, data_format)


@kernel("channel_shuffle_grad", place=PLACES, dtypes=ALL_DTYPES)
def channel_shuffle_grad(Out_grad: Array, *, groups: int, data_format: str) -> Array:
    channels = Out_grad.shape[-1 if is_channel_last(data_format) else 1]
    return regrouped(Out_grad, channels // groups, data_format)


# pixel_shuffle --------------------------------------------------------------------------------------------------------
@kernel("pixel_shuffle", place=PLACES, dtypes=ALL_DTYPES)
def pixel_shuffle(X: Array, *, upscale_factor: int, data_format: str, xp: ArrayModule) -> Array:
    return upscaled(X, upscale_factor, data_format, xp) if upscale_factor > 1 else X.copy()


@kernel("pixel_shuffle_grad", place=PLACES, dtypes=ALL_DTYPES)
def pixel_shuffle_grad(Out_grad: Array, *, upscale_factor: int, data_format: str, xp: ArrayModule) -> Array:
    return downscaled(Out_grad, upscale_factor, data_format, xp) if upscale_factor > 1 else Out_grad.copy()


# pixel_unshuffle ------------------------------------------------------------------------------------------------------
@kernel("pixel_unshuffle", place=PLACES, dtypes=ALL_DTYPES)
def pixel_unshuffle(X: Array, *, downscale_factor: int, data_format: str, xp: ArrayModule) -> Array:
    return downscaled(X, downscale_factor, data_format, xp) if downscale_factor > 1 else X.copy()


@kernel("pixel_unshuffle_grad", place=PLACES, dtypes=ALL_DTYPES)
def pixel_unshuffle_grad(Out_grad: Array, *, downscale_factor: int, data_format: str, xp: ArrayModule) -> Array:
    return upscaled(Out_grad, downscale_factor, data_format, xp) if downscale_factor > 1 else Out_grad.copy()


# shuffle_channel ------------------------------------------------------------------------------------------------------
@kernel("shuffle_channel", place=PLACES, dtypes=ALL_DTYPES)
def shuffle_channel(X: Array, *, group: int) -> Array:
    return regrouped(X, group, "NCHW")


@kernel("shuffle_channel_grad", place=PLACES, dtypes=ALL_DTYPES)
def shuffle_channel_grad(Out_grad: Array, *, group: int) -> Array:
    return regrouped(Out_grad, Out_grad.shape[1] // group, "NCHW")


# space_to_depth -------------------------------------------------------------------------------------------------------
@kernel("space_to_depth", place=PLACES, dtypes=ALL_DTYPES)
def space_to_depth(X: Array, *, blocksize: int) -> Array:
    """One transposition."""
    (n, c, h, w), b = X.shape, blocksize
    unfolded = X.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    return unfolded.reshape(n, c * b * b, h // b, w // b).copy()


@kernel("space_to_depth_grad", place=PLACES, dtypes=ALL_DTYPES)
def space_to_depth_grad(X: ShapeOnly, Out_grad: Array, *, blocksize: int) -> Array:
    """The transposition back."""
    (n, c, h, w), b = X.shape, blocksize
    unfolded = Out_grad.reshape(n, c // (b * b), h, b, w, b).transpose(0, 3, 5, 1, 2, 4)
    return unfolded.reshape(n, c, h, w).copy()


# temporal_shift -------------------------------------------------------------------------------------------------------


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


@kernel("temporal_shift", place=PLACES, dtypes=FLOATS)
def temporal_shift(X: Array, *, seg_num: int, shift_ratio: float, data_format: str, xp: ArrayModule) -> Array:
    return _shift(X, seg_num, shift_ratio, data_format, True, xp)


@kernel("temporal_shift_grad", place=PLACES, dtypes=FLOATS)
def temporal_shift_grad(
    Out_grad: Array, *, seg_num: int, shift_ratio: float, data_format: str, xp: ArrayModule
) -> Array:
    return _shift(Out_grad, seg_num, shift_ratio, data_format, False, xp)
