"""Kernels of pooling."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.device import constant
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_nn.kernels._layout import from_channel_first, to_channel_first
from oprack_nn.ops.pool import PoolGeometry, levels

_LONG = 8
"""Elements of a window from which on NumPy's own reduction is faster than an operation of arrays for each."""


# windows --------------------------------------------------------------------------------------------------------------
# Pooling, one spatial dim after the other: max and sum both separate, so k + k taps do instead of k x k.
# Arrays are channels first, [N, C, *spatial]; `xp` is numpy or cupy. Where windows begin and end is found on the
# host.
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


def _padded(x: Array, axis: int, w: Windows, value: float | np.float32, xp: ArrayModule) -> Array:
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


def _over_tiles(x: Array, axis: int, w: Windows, reduce: str, combine: np.ufunc, xp: ArrayModule) -> Array:
    """Maxima or sums of windows that lie side by side, by a method of arrays or by NumPy's function of two."""
    tiles = _tiled(x, axis, w)
    if xp is not np or w.tiles > _LONG:
        whole: Array = getattr(tiles, reduce)(axis=axis + 1)
        return whole
    # NumPy reduces a short axis element by element, and goes over whole arrays with vectors
    parts = np.moveaxis(tiles, axis + 1, 0)
    result: Array = parts[0].copy()
    for part in parts[1:]:
        combine(result, part, out=result)
    return result


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
            x = _over_tiles(x, axis, w, "max", np.maximum, xp)
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
    windows = windows_of(geo)
    if all(w.count == 1 and w.tiles == w.size > 0 for w in windows) and x.dtype.name in FLOATS and x.flags.c_contiguous:
        # BLAS adds up whole planes five times as fast as NumPy's reductions
        ones = constant(np.ones(math.prod(geo.spatial), x.dtype), xp)
        return (x.reshape(-1, ones.size) @ ones).reshape(*x.shape[:2], *geo.out)
    for axis, w in reversed(list(enumerate(windows, 2))):
        if w.tiles:
            x = _over_tiles(x, axis, w, "sum", np.add, xp)
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


# shared ---------------------------------------------------------------------------------------------------------------
# Pooling and its gradients: one kernel each for any number of spatial dims.
PLACES = ("cpu", "cuda")

SCATTER: dict[str, Any] = {"place": PLACES, "deterministic": {"cpu"}}  # a GPU adds what meets in one place in any order


def max_pool_with_index(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> tuple[Array, Array]:
    """Maxima of the windows, and where they lie."""
    out, position = pool_argmax(X, PoolGeometry.of(X.shape[2:], ctx.attrs), xp)
    return out, position.astype("int32")


def max_pool_with_index_grad(X: ShapeOnly, Mask: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Gradients of the maxima, back where these lie."""
    return scatter_max(Out_grad, Mask.astype("int64"), X.shape[2:], xp)


def pool_geometry(x: Array, attrs: Mapping[str, Any]) -> PoolGeometry:
    """Windows as pool2d and pool3d slide them."""
    geo = PoolGeometry.of(x.shape[2:], attrs)
    if geo.adaptive and attrs["pooling_type"] == "max":
        # Paddle slides windows of ksize by strides here; its adaptive max pooling is max_pool2d_with_index
        return dataclasses.replace(geo, adaptive=False)
    return geo


def pooled(x: Array, attrs: Mapping[str, Any], data_format: str, xp: ArrayModule) -> Array:
    """Maxima or means of the windows."""
    x = to_channel_first(x, data_format)
    geo = pool_geometry(x, attrs)
    if attrs["pooling_type"] == "max":
        y = pool_max(x, geo, xp)
    else:
        with np.errstate(invalid="ignore"):  # a window of ceil_mode that starts at the end: 0 / 0, as in Paddle
            y = pool_sum(x, geo, xp) / window_sizes(geo, attrs["exclusive"], x.dtype, xp)
    return from_channel_first(y, data_format, xp)


def pool(X: Array, *, ksize: list[int], data_format: str, ctx: KernelContext, xp: ArrayModule) -> Array:
    """The kernel of pool2d and pool3d."""
    return pooled(X, {**ctx.attrs, "ksize": ksize}, data_format, xp)


def pooled_grad(x: Array, dy: Array, attrs: Mapping[str, Any], data_format: str, xp: ArrayModule) -> Array:
    """Gradients of maxima go to where the first of them lies, of means to all of the window."""
    x, dy = to_channel_first(x, data_format), to_channel_first(dy, data_format)
    geo = pool_geometry(x, attrs)
    # a window of ceil_mode may lie behind the end and see nothing
    dy = xp.where(nonempty(geo, xp), dy, 0)
    if attrs["pooling_type"] == "max":
        dx = scatter_max(dy, pool_argmax(x, geo, xp)[1], geo.spatial, xp)
    else:
        sizes = window_sizes(geo, attrs["exclusive"], dy.dtype, xp)
        dx = spread_sum(dy / xp.where(sizes > 0, sizes, 1), geo, xp)
    return from_channel_first(dx, data_format, xp)


def pool_grad(
    X: Array, Out_grad: Array, *, ksize: list[int], data_format: str, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """The kernel of the gradients of pool2d and pool3d."""
    return pooled_grad(X, Out_grad, {**ctx.attrs, "ksize": ksize}, data_format, xp)


# unpool ---------------------------------------------------------------------------------------------------------------
# Unpooling and its gradient, for any number of spatial dims.
def _places(indices: Array, size: int, op_type: str, xp: ArrayModule) -> Array:
    """Indices [N, C, P] within [0, size); not looked at on a GPU, where it would wait for the device."""
    n, c = indices.shape[:2]
    if xp is np and indices.size and (indices.min() < 0 or indices.max() >= size):
        wrong = indices[(indices < 0) | (indices >= size)]
        raise InvalidArgumentError(
            f"op {op_type}: Indices holds {int(wrong[0])}; expected 0 <= index < {size}, the elements of a plane of "
            "Out: give the output_size that was pooled"
        )
    return indices.reshape(n, c, math.prod(indices.shape[2:])).astype("int64")


def _sizes(x: Array, output_size: list[int], ctx: KernelContext) -> tuple[int, ...]:
    if any(output_size):
        return tuple(int(s) for s in output_size)
    attrs = ctx.attrs
    steps = zip(x.shape[2:], attrs["ksize"], attrs["strides"], attrs["paddings"], strict=True)
    return tuple((s - 1) * t - 2 * p + k for s, k, t, p in steps)


def unpooled(X: Array, Indices: Array, *, output_size: list[int], ctx: KernelContext, xp: ArrayModule) -> Array:
    """Every element of X at its place."""
    n, c = X.shape[:2]
    sizes = _sizes(X, output_size, ctx)
    places = _places(Indices, math.prod(sizes), ctx.op_type, xp)
    planes = xp.zeros((n, c, math.prod(sizes)), X.dtype)
    xp.put_along_axis(planes, places, X.reshape(places.shape), axis=2)
    return planes.reshape(n, c, *sizes)


def unpooled_grad(
    X: ShapeOnly, Indices: Array, Out: ShapeOnly, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """What lies at the place of each element of X."""
    n, c, *sizes = Out_grad.shape
    places = _places(Indices, math.prod(sizes), ctx.op_type, xp)
    return xp.take_along_axis(Out_grad.reshape(n, c, math.prod(sizes)), places, axis=2).reshape(X.shape)


# max_pool2d_with_index ------------------------------------------------------------------------------------------------
max_pool2d_with_index = kernel("max_pool2d_with_index", place=PLACES, dtypes=FLOATS)(max_pool_with_index)

max_pool2d_with_index_grad = kernel("max_pool2d_with_index_grad", dtypes=FLOATS, **SCATTER)(max_pool_with_index_grad)


# max_pool3d_with_index ------------------------------------------------------------------------------------------------
max_pool3d_with_index = kernel("max_pool3d_with_index", place=PLACES, dtypes=FLOATS)(max_pool_with_index)

max_pool3d_with_index_grad = kernel("max_pool3d_with_index_grad", dtypes=FLOATS, **SCATTER)(max_pool_with_index_grad)


# pool2d ---------------------------------------------------------------------------------------------------------------
pool2d = kernel("pool2d", place=PLACES, dtypes=FLOATS)(pool)

pool2d_grad = kernel("pool2d_grad", dtypes=FLOATS, **SCATTER)(pool_grad)


@kernel("pool2d_double_grad", place=PLACES, dtypes=FLOATS)
def pool2d_double_grad(
    grad_x_grad: Array, *, ksize: list[int], pooling_type: str, data_format: str, ctx: KernelContext, xp: ArrayModule
) -> Array:
    if pooling_type == "max":
        raise UnimplementedError(
            "op pool2d_double_grad: max pooling has no second gradient here, since the op does not get X to see where "
            "the maxima were; use average pooling or max_pool2d_with_index"
        )
    return pooled(grad_x_grad, {**ctx.attrs, "ksize": ksize}, data_format, xp)


# pool3d ---------------------------------------------------------------------------------------------------------------
pool3d = kernel("pool3d", place=PLACES, dtypes=FLOATS)(pool)

pool3d_grad = kernel("pool3d_grad", dtypes=FLOATS, **SCATTER)(pool_grad)


# spp ------------------------------------------------------------------------------------------------------------------
@kernel("spp", place=PLACES, dtypes=FLOATS)
def spp(X: Array, *, pyramid_height: int, pooling_type: str, xp: ArrayModule) -> Array:
    n, c, *spatial = X.shape
    parts = [pooled(X, attrs, "NCHW", xp) for attrs in levels(spatial, pyramid_height, pooling_type)]
    return xp.concatenate([p.reshape(n, c * p.shape[2] * p.shape[3]) for p in parts], axis=1)


@kernel("spp_grad", dtypes=FLOATS, **SCATTER)
def spp_grad(
    X: Array, Out: Array, Out_grad: Array, *, pyramid_height: int, pooling_type: str, xp: ArrayModule
) -> Array:
    n, c, *spatial = X.shape
    dx, at = xp.zeros_like(X), 0
    for p, attrs in enumerate(levels(spatial, pyramid_height, pooling_type)):
        bins = 2**p
        part = Out_grad[:, at : at + c * bins * bins].reshape(n, c, bins, bins)
        dx += pooled_grad(X, part, attrs, "NCHW", xp)
        at += c * bins * bins
    return dx


# unpool ---------------------------------------------------------------------------------------------------------------
unpool = kernel("unpool", place=PLACES, dtypes=FLOATS)(unpooled)

unpool_grad = kernel("unpool_grad", place=PLACES, dtypes=FLOATS)(unpooled_grad)


# unpool3d -------------------------------------------------------------------------------------------------------------
unpool3d = kernel("unpool3d", place=PLACES, dtypes=FLOATS)(unpooled)

unpool3d_grad = kernel("unpool3d_grad", place=PLACES, dtypes=FLOATS)(unpooled_grad)
