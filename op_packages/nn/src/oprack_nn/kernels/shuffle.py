"""Kernels of pixel_shuffle, pixel_unshuffle, channel_shuffle, shuffle_channel and their gradients."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import ALL_DTYPES

from oprack_nn.ops._conv import is_channel_last

_PLACES = ("cpu", "cuda")


def _up(x, r, layout, xp):
    """[C r r, H, W] -> [C, H r, W r]."""
    if is_channel_last(layout):
        n, h, w, c = x.shape
        split = x.reshape(n, h, w, c // (r * r), r, r).transpose(0, 1, 4, 2, 5, 3)
        return xp.ascontiguousarray(split).reshape(n, h * r, w * r, c // (r * r))
    n, c, h, w = x.shape
    split = x.reshape(n, c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    return xp.ascontiguousarray(split).reshape(n, c // (r * r), h * r, w * r)


def _down(x, r, layout, xp):
    """[C, H r, W r] -> [C r r, H, W]."""
    if is_channel_last(layout):
        n, h, w, c = x.shape
        split = x.reshape(n, h // r, r, w // r, r, c).transpose(0, 1, 3, 5, 2, 4)
        return xp.ascontiguousarray(split).reshape(n, h // r, w // r, c * r * r)
    n, c, h, w = x.shape
    split = x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return xp.ascontiguousarray(split).reshape(n, c * r * r, h // r, w // r)


def _regroup(x, rows, layout):
    """Channels as [rows, C / rows], transposed; always a copy."""
    if is_channel_last(layout):
        return x.reshape(*x.shape[:-1], rows, x.shape[-1] // rows).swapaxes(-1, -2).copy().reshape(x.shape)
    return x.reshape(x.shape[0], rows, x.shape[1] // rows, *x.shape[2:]).swapaxes(1, 2).copy().reshape(x.shape)


@kernel("pixel_shuffle", place=_PLACES, dtypes=ALL_DTYPES)
def pixel_shuffle(X, *, upscale_factor, data_format, xp):
    return _up(X, upscale_factor, data_format, xp) if upscale_factor > 1 else X.copy()


@kernel("pixel_shuffle_grad", place=_PLACES, dtypes=ALL_DTYPES)
def pixel_shuffle_grad(Out_grad, *, upscale_factor, data_format, xp):
    return _down(Out_grad, upscale_factor, data_format, xp) if upscale_factor > 1 else Out_grad.copy()


@kernel("pixel_unshuffle", place=_PLACES, dtypes=ALL_DTYPES)
def pixel_unshuffle(X, *, downscale_factor, data_format, xp):
    return _down(X, downscale_factor, data_format, xp) if downscale_factor > 1 else X.copy()


@kernel("pixel_unshuffle_grad", place=_PLACES, dtypes=ALL_DTYPES)
def pixel_unshuffle_grad(Out_grad, *, downscale_factor, data_format, xp):
    return _up(Out_grad, downscale_factor, data_format, xp) if downscale_factor > 1 else Out_grad.copy()


@kernel("channel_shuffle", place=_PLACES, dtypes=ALL_DTYPES)
def channel_shuffle(X, *, groups, data_format):
    return _regroup(X, groups, data_format)


@kernel("channel_shuffle_grad", place=_PLACES, dtypes=ALL_DTYPES)
def channel_shuffle_grad(Out_grad, *, groups, data_format):
    channels = Out_grad.shape[-1 if is_channel_last(data_format) else 1]
    return _regroup(Out_grad, channels // groups, data_format)


@kernel("shuffle_channel", place=_PLACES, dtypes=ALL_DTYPES)
def shuffle_channel(X, *, group):
    return _regroup(X, group, "NCHW")


@kernel("shuffle_channel_grad", place=_PLACES, dtypes=ALL_DTYPES)
def shuffle_channel_grad(Out_grad, *, group):
    return _regroup(Out_grad, Out_grad.shape[1] // group, "NCHW")
