"""Kernels of psroi_pool and its gradient: means over rectangles, from sums over all that lies above and left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_detection.kernels._regions import image_of_region


class PsroiOptions(NamedTuple):
    """The attributes, as one parameter of the kernels."""

    pooled_height: int
    pooled_width: int
    output_channels: int
    spatial_scale: float


class _Bins(NamedTuple):
    """First and last row and column of each bin, and where its sums lie; all broadcast to [R, C, H', W']."""

    top: Array
    bottom: Array
    left: Array
    right: Array
    image: Array
    channel: Array

    @property
    def sizes(self) -> Array:
        """Pixels of each bin."""
        return (self.bottom - self.top) * (self.right - self.left)

    def corners(self) -> list[tuple[int, Array, Array]]:
        """(sign, row, column): the sum over a bin is that of these corners of an integral image."""
        return [
            (1, self.bottom, self.right),
            (-1, self.top, self.right),
            (-1, self.bottom, self.left),
            (1, self.top, self.left),
        ]


def _edges(start: Array, end: Array, count: int, limit: int) -> tuple[Array, Array]:
    """First pixel and the one behind the last of each bin along one dim, [R, count]."""
    size = np.maximum(end - start, start.dtype.type(0.1)) / start.dtype.type(count)
    step = np.arange(count, dtype=start.dtype)
    low = np.floor(step * size[:, None] + start[:, None])
    high = np.ceil((step + 1) * size[:, None] + start[:, None])
    first = np.clip(low, 0, limit).astype(np.int64)
    return first, np.maximum(np.clip(high, 0, limit).astype(np.int64), first)


def _bins(shape: tuple[int, ...], rois: Array, image: Array, options: PsroiOptions) -> _Bins:
    kind = rois.dtype.type
    corner = np.copysign(np.floor(np.abs(rois) + kind(0.5)), rois)  # halves away from zero
    scale = kind(options.spatial_scale)
    start, end = corner[:, :2] * scale, (corner[:, 2:] + kind(1)) * scale
    top, bottom = _edges(start[:, 1], end[:, 1], options.pooled_height, shape[2])
    left, right = _edges(start[:, 0], end[:, 0], options.pooled_width, shape[3])
    channel = np.arange(shape[1]).reshape(options.output_channels, options.pooled_height, options.pooled_width)
    rows = (slice(None), None, slice(None), None)
    columns = (slice(None), None, None, slice(None))
    return _Bins(top[rows], bottom[rows], left[columns], right[columns], image[:, None, None, None], channel[None])


@kernel("psroi_pool", dtypes=FLOATS)
def psroi_pool(
    X: Array, ROIs: Array, RoisNum: Array | None = None, *, options: PsroiOptions, ctx: KernelContext
) -> Array:
    image = image_of_region(ROIs, RoisNum, ctx.lod("ROIs"), len(X), "psroi_pool")
    bins = _bins(X.shape, ROIs, image, options)
    n, c, h, w = X.shape
    integral = np.zeros((n, c, h + 1, w + 1))
    np.cumsum(np.cumsum(X, axis=2, dtype=np.float64), axis=3, out=integral[:, :, 1:, 1:])
    total = sum(sign * integral[bins.image, bins.channel, row, column] for sign, row, column in bins.corners())
    return (total / np.maximum(bins.sizes, 1)).astype(X.dtype)


@kernel("psroi_pool_grad", dtypes=FLOATS)
def psroi_pool_grad(
    X: ShapeOnly,
    ROIs: Array,
    Out_grad: Array,
    RoisNum: Array | None = None,
    *,
    options: PsroiOptions,
    ctx: KernelContext,
) -> Array:
    n, c, h, w = X.shape
    image = image_of_region(ROIs, RoisNum, ctx.lod("ROIs"), n, "psroi_pool_grad")
    bins = _bins(X.shape, ROIs, image, options)
    share = Out_grad.astype(np.float64) / np.maximum(bins.sizes, 1)
    slopes = np.zeros((n, c, h + 1, w + 1))
    for sign, row, column in bins.corners():
        np.add.at(slopes, (bins.image, bins.channel, row, column), sign * share)
    # a pixel is in every integral below and right of it
    below = slopes[:, :, ::-1, ::-1].cumsum(axis=2).cumsum(axis=3)[:, :, ::-1, ::-1]
    return below[:, :, 1:, 1:].astype(Out_grad.dtype)
