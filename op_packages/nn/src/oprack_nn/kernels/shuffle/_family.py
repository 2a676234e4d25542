"""Channels to pixels, back, and channels among themselves."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule

from oprack_nn.ops._layout import is_channel_last

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
