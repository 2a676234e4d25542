"""Interpolation, one spatial dim after the other: every output is a weighted sum of a few inputs along the dim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule

# Largest [out, in] matrix that the adjoint along one dim is done with; above, a scatter does it.
_MATRIX = 1 << 24


def ratio(size: int, out: int, factor: float | None, align_corners: bool) -> np.float32:
    """Distance of samples in the input, in float32 as in Paddle; factor: the scale in effect, or None."""
    if out <= 1:
        return np.float32(0)
    if align_corners:
        return np.float32(size - 1) / np.float32(out - 1)
    return np.float32(1.0 / factor) if factor is not None else np.float32(size) / np.float32(out)


def _linear(step: np.float32, out: int, edges: bool, wide: bool, dtype: np.dtype[Any] | str) -> tuple[Any, Any]:
    k = np.arange(out)
    if edges:
        # Paddle finds the position in float64 in the ops without _v2, in float32 in the others
        real = np.float64 if wide else np.float32
        position = real(step) * (k.astype(real) + real(0.5)) - real(0.5)
        first = np.maximum(position.astype(np.int64), 0)
        fraction = np.maximum(position.astype(np.float32), 0) - first.astype(np.float32)
    else:
        position = step * k.astype(np.float32)
        first = position.astype(np.int64)
        fraction = position - first.astype(np.float32)
    return first + np.arange(2)[:, None], np.stack([np.float32(1) - fraction, fraction]).astype(dtype)


def _cubic(step: np.float32, out: int, align_corners: bool, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    k = np.arange(out)
    position = step * k.astype(np.float32) if align_corners else np.float64(step) * (k + 0.5) - 0.5
    position = position.astype(dtype)
    first = np.floor(position).astype(np.int64)
    t = position - first.astype(dtype)
    a = np.asarray(-0.75, dtype)

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return first - 1 + np.arange(4)[:, None], np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)]).astype(dtype)


def _nearest(step: np.float32, out: int, align_corners: bool) -> tuple[Any, None]:
    position = step * np.arange(out, dtype=np.float32)
    return (position.astype(np.float64) + (0.5 if align_corners else 0.0)).astype(np.int64)[None], None


def taps(
    method: str,
    size: int,
    out: int,
    factor: float | None,
    align_corners: bool,
    align_mode: int,
    v2: bool,
    dtype: np.dtype[Any] | str,
) -> tuple[Any, Any]:
    """(indices [taps, out], weights [taps, out] or None for 1) along one dim of `size` elements; NumPy arrays.

    method: linear, nearest or bicubic. v2: one of the *_interp_v2 ops.
    """
    step = ratio(size, out, factor, align_corners)
    if method == "nearest":
        index, weight = _nearest(step, out, align_corners)
    elif method == "bicubic":
        index, weight = _cubic(step, out, align_corners, dtype)
    else:
        index, weight = _linear(step, out, align_mode == 0 and not align_corners, not v2, dtype)
    return np.clip(index, 0, size - 1), weight


def resample(x: Array, axis: int, index: Array, weight: Array | None, xp: ArrayModule) -> Array:
    """Weighted sums of elements of x along an axis."""
    if weight is None:
        return x.take(constant(index[0], xp), axis=axis)
    shape = (-1,) + (1,) * (x.ndim - axis - 1)
    total = None
    for i, w in zip(index, weight, strict=True):
        part = x.take(constant(i, xp), axis=axis)
        part *= constant(w, xp).reshape(shape)
        if total is None:
            total = part
        else:
            total += part
    return total


def resample_adjoint(y: Array, axis: int, size: int, index: Array, weight: Array | None, xp: ArrayModule) -> Array:
    """The adjoint of `resample` to `size` elements."""
    out = y.shape[axis]
    weight = np.ones(index.shape, y.dtype) if weight is None else weight
    if out * size <= _MATRIX:
        matrix = np.zeros((size, out), y.dtype)
        for i, w in zip(index, weight, strict=True):
            matrix[i, np.arange(out)] += w
        return xp.moveaxis(xp.tensordot(y, constant(matrix, xp), axes=(axis, 1)), -1, axis)
    lines = xp.moveaxis(y, axis, 0)
    x = xp.zeros((size, *lines.shape[1:]), y.dtype)
    shape = (-1,) + (1,) * (lines.ndim - 1)
    for i, w in zip(index, weight, strict=True):
        xp.add.at(x, constant(i, xp), lines * constant(w, xp).reshape(shape))
    return xp.moveaxis(x, 0, axis)


def numbers(value: Array | None) -> Sequence[Any] | None:
    """A small tensor as a list; None when absent."""
    return None if value is None else value.reshape(-1).tolist()
