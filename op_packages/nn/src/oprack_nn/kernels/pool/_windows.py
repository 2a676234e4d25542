"""Pooling, one spatial dim after the other: max and sum both separate, so k + k taps do instead of k x k.

Arrays are channels first, [N, C, *spatial]; `xp` is numpy or cupy. Where windows begin and end is found on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule

from oprack_nn.ops.pool._family import PoolGeometry


@dataclass(frozen=True)
class Windows:
    """Windows along one dim: `count` of them, window i covers [i stride - pad, i stride - pad + k) of `size` elements.

    adaptive: window i covers [floor(i size / count), ceil((i + 1) size / count)) instead.
    """

    size: int
    count: int
    k: int
    stride: int
    pad: int
    adaptive: bool

    @property
    def step(self) -> int:
        """The stride, but not more than leads out of the array: what lies behind it is all the same."""
        return min(self.stride, max(self.k, self.size + self.pad, 1))

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """First and last + 1 element of each window, inside of the array; both [count].

        The last windows of ceil_mode may start at the end or behind it, last + 1 <= first then.
        """
        i = np.arange(self.count)
        if self.adaptive:
            return i * self.size // self.count, -(-(i + 1) * self.size // self.count)
        start = i * self.stride - self.pad
        return np.maximum(start, 0), np.minimum(start + self.k, self.size)

    def full_counts(self) -> np.ndarray:
        """Elements of each window with the padding, which Paddle takes to be as wide behind as in front; [count]."""
        start = np.arange(self.count) * self.stride - self.pad
        return np.minimum(start + self.k, self.size + self.pad) - start

    @property
    def tiles(self) -> int:
        """Width of the windows when they lie side by side and fill the dim, else 0."""
        if self.adaptive:
            return self.size // self.count if self.count and self.size % self.count == 0 else 0
        side_by_side = self.pad == 0 and (self.k == self.stride or self.count == 1)
        return self.k if side_by_side and self.count * self.k == self.size else 0


def windows_of(geo: PoolGeometry) -> list[Windows]:
    return [
        Windows(size, out, k, stride, pad, geo.adaptive)
        for size, out, k, stride, (pad, _) in zip(geo.spatial, geo.out, geo.ksize, geo.strides, geo.pads, strict=True)
    ]


def _slice(w: Windows, tap: int) -> slice:
    return slice(tap, tap + (w.count - 1) * w.step + 1, w.step)


def _padded(x: Array, axis: int, w: Windows, value: float, xp: ArrayModule) -> Array:
    """x along `axis` as the windows see it, from the first element of the first to the last of the last."""
    length = (w.count - 1) * w.step + w.k
    taken = min(w.size, length - w.pad)
    if w.pad == 0 and taken == length:
        return x
    padded = xp.full((*x.shape[:axis], length, *x.shape[axis + 1 :]), value, x.dtype)
    padded[(slice(None),) * axis + (slice(w.pad, w.pad + taken),)] = x[(slice(None),) * axis + (slice(0, taken),)]
    return padded


def _tiled(x: Array, axis: int, w: Windows) -> Array:
    return x.reshape(*x.shape[:axis], w.count, w.tiles, *x.shape[axis + 1 :])


def _membership(w: Windows, dtype: np.dtype[Any], xp: ArrayModule) -> Array:
    """[count, size]: 1 where a window covers an element."""
    start, stop = w.bounds()
    j = np.arange(w.size)
    return constant(((j >= start[:, None]) & (j < stop[:, None])).astype(dtype), xp)


def along(x: Array, axis: int, matrix: Array, xp: ArrayModule) -> Array:
    """Matrix [rows, size] times every line of x along `axis`."""
    return xp.moveaxis(xp.tensordot(x, matrix, axes=(axis, 1)), -1, axis)


def pool_max(x: Array, geo: PoolGeometry, xp: ArrayModule) -> Array:
    """Maxima of the windows; an empty one gives the lowest float32, as in Paddle for every dtype."""
    lowest = np.finfo(np.float32).min
    for axis, w in reversed(list(enumerate(windows_of(geo), 2))):
        if w.tiles:
            x = _tiled(x, axis, w).max(axis=axis + 1)
        elif w.adaptive:
            start, stop = w.bounds()
            best = x.take(constant(start, xp), axis=axis)
            for t in range(1, int((stop - start).max())):
                xp.maximum(best, x.take(constant(np.minimum(start + t, stop - 1), xp), axis=axis), out=best)
            x = best
        else:
            x, lead = _padded(x, axis, w, lowest, xp), (slice(None),) * axis
            best = x[(*lead, _slice(w, 0))].copy()
            for t in range(1, w.k):
                xp.maximum(best, x[(*lead, _slice(w, t))], out=best)
            x = best
    return x


def pool_sum(x: Array, geo: PoolGeometry, xp: ArrayModule) -> Array:
    """Sums over the windows."""
    for axis, w in reversed(list(enumerate(windows_of(geo), 2))):
        if w.tiles:
            x = _tiled(x, axis, w).sum(axis=axis + 1)
        elif w.adaptive:
            x = along(x, axis, _membership(w, x.dtype, xp), xp)
        else:
            x, lead = _padded(x, axis, w, 0, xp), (slice(None),) * axis
            total = x[(*lead, _slice(w, 0))].copy()
            for t in range(1, w.k):
                total += x[(*lead, _slice(w, t))]
            x = total
    return x


def spread_sum(y: Array, geo: PoolGeometry, xp: ArrayModule) -> Array:
    """The adjoint of pool_sum: each window's number is added to all of its elements."""
    for axis, w in enumerate(windows_of(geo), 2):
        if w.tiles:
            y = xp.repeat(y, w.tiles, axis=axis)
        elif w.adaptive:
            y = along(y, axis, _membership(w, y.dtype, xp).T, xp)
        else:
            lead = (slice(None),) * axis
            length = max((w.count - 1) * w.step + w.k, w.pad + w.size)
            x = xp.zeros((*y.shape[:axis], length, *y.shape[axis + 1 :]), y.dtype)
            for t in range(w.k):
                x[(*lead, _slice(w, t))] += y
            y = x[(*lead, slice(w.pad, w.pad + w.size))]
    return y


def nonempty(geo: PoolGeometry, xp: ArrayModule) -> Array:
    """Whether a window sees any element; broadcasts against [N, C, *out]."""
    seen = np.ones((1, 1), bool)
    for w in windows_of(geo):
        start, stop = w.bounds()
        seen = seen[..., None] & (stop > start)
    return constant(seen, xp)


def window_sizes(geo: PoolGeometry, exclusive: bool, dtype: np.dtype[Any], xp: ArrayModule) -> Array:
    """What avg pooling divides by; broadcasts against [N, C, *out]. 0 or negative along a dim for an empty window."""
    sizes = np.ones((1, 1), dtype)
    for w in windows_of(geo):
        start, stop = w.bounds()
        counts = stop - start if exclusive or w.adaptive else w.full_counts()
        sizes = sizes[..., None] * counts.astype(dtype)
    return constant(sizes, xp)


def _pick(
    x: Array, position: Array | None, index: np.ndarray, axis: int, scale: int, xp: ArrayModule
) -> tuple[Any, Any]:
    """Elements of x along axis, and their positions; position: within the later dims, None when there are none."""
    at = constant(index, xp)
    value = x.take(at, axis=axis)
    # int32: the mask of max_pool2d_with_index is no wider
    here = constant((index * scale).astype(np.int32), xp).reshape((-1,) + (1,) * (x.ndim - axis - 1))
    return value, xp.broadcast_to(here, value.shape) if position is None else here + position.take(at, axis=axis)


def pool_argmax(x: Array, geo: PoolGeometry, xp: ArrayModule) -> tuple[Any, Any]:
    """Maxima of the windows and where the first of each lies, as a position in the flattened spatial dims."""
    position = None
    scale = 1
    for axis, w in reversed(list(enumerate(windows_of(geo), 2))):
        start, stop = w.bounds()
        best, where = _pick(x, position, np.minimum(start, w.size - 1), axis, scale, xp)
        for t in range(1, int((stop - start).max()) if w.count else 0):
            # shorter windows look at their last element again
            index = np.clip(np.minimum(start + t, stop - 1), 0, w.size - 1)
            value, here = _pick(x, position, index, axis, scale, xp)
            better = value > best  # strictly: the first of equal elements wins
            best = xp.maximum(best, value)
            where = where + (here - where) * better  # half the time of a where() at random places
        x, position = best, where
        scale *= w.size
    return x, position


def scatter_max(y: Array, position: Array, spatial: tuple[int, ...], xp: ArrayModule) -> Array:
    """The adjoint of pool_argmax: numbers of the windows are added at their positions."""
    n, c = y.shape[:2]
    size = 1
    for s in spatial:
        size *= s
    x = xp.zeros(n * c * size, y.dtype)
    planes = xp.arange(n * c).reshape(n, c, *(1,) * len(spatial)) * size
    xp.add.at(x, (planes + position).reshape(-1), y.reshape(-1))
    return x.reshape(n, c, *spatial)
