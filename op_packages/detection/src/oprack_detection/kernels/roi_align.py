"""Kernels of roi_align: bilinear samples are gathered for many regions at once, or are two products for each.

A bin is the mean of samples, each of which weighs four pixels, so it is linear in the pixels of the map, and along rows
and columns apart: a product with the weights of all rows, and one with those of all columns. On the CPU that reads each
pixel of a region once, where gathering copies those around every sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_detection.kernels._regions import host, image_of_region

_CHUNK = 1 << 22  # elements of a gathered block: bounds the memory that many regions take
_TOGETHER = 64  # regions whose weights are worked out at once
_LARGEST = 1 << 28  # elements that one region may gather


def _axis(start: Array, size: Array, bins: int, samples: int, length: int, dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """Samples along one dim of a map: (low pixel, high pixel, weight of low, weight of high), each [R, bins * samples].

    Weights are 0 for a sample more than one pixel outside.
    """
    step = (np.arange(bins)[:, None] + (np.arange(samples) + 0.5) / samples).reshape(-1).astype(dtype)
    at = start[:, None] + size[:, None] / dtype.type(bins) * step
    inside = (at >= -1) & (at <= length)
    at = np.clip(at, 0, length - 1)
    low = np.minimum(at.astype(np.int64), max(length - 2, 0))
    high = np.minimum(low + 1, length - 1)
    upper = at - low
    return low, high, (1 - upper) * inside, upper * inside


def _groups(
    x_shape: tuple[int, ...],
    rois: Array,
    image: Array,
    pooled: tuple[int, int],
    scale: float,
    ratio: int,
    aligned: bool,
) -> Iterator[tuple[Array, int, int, Array, tuple[Array, ...], tuple[Array, ...]]]:
    """Blocks of regions with equal sample counts: (regions, samples of y and x, their image, axis data of y and x)."""
    dtype = rois.dtype
    shift = dtype.type(0.5 if aligned else 0.0)
    box = rois * dtype.type(scale) - shift
    size = box[:, 2:] - box[:, :2]
    if not aligned:
        size = np.maximum(size, dtype.type(1))
    if ratio > 0:
        counts = np.full((len(rois), 2), ratio)
    else:
        counts = np.clip(np.ceil(size / np.array(pooled[::-1], dtype)), 0, _LARGEST).astype(np.int64)
    for nx, ny in np.unique(counts, axis=0):
        members = np.flatnonzero((counts == (nx, ny)).all(axis=1))
        if nx == 0 or ny == 0:
            continue
        per_region = int(nx) * int(ny) * pooled[0] * pooled[1] * x_shape[1]
        if per_region > _LARGEST:
            raise InvalidArgumentError(
                f"op roi_align: region {members[0]} takes {ny} x {nx} samples in each of {pooled[0]} x {pooled[1]} "
                f"bins; expected at most {_LARGEST} samples in all {x_shape[1]} channels: check ROIs, spatial_scale "
                "and sampling_ratio"
            )
        step = max(1, _CHUNK // max(per_region, 1))
        for i in range(0, len(members), step):
            part = members[i : i + step]
            y = _axis(box[part, 1], size[part, 1], pooled[0], int(ny), x_shape[2], dtype)
            x = _axis(box[part, 0], size[part, 0], pooled[1], int(nx), x_shape[3], dtype)
            yield part, int(ny), int(nx), image[part], y, x


def _corners(y: Sequence[Array], x: Sequence[Array], xp: ArrayModule) -> Iterator[tuple[Array, ...]]:
    """The four pixels around each sample: (rows, columns, weights), which broadcast to [R, samples y, samples x]."""
    y, x = [xp.asarray(a) for a in y], [xp.asarray(a) for a in x]
    for row, row_weight in ((y[0], y[2]), (y[1], y[3])):
        for column, column_weight in ((x[0], x[2]), (x[1], x[3])):
            yield row[:, :, None], column[:, None, :], row_weight[:, :, None] * column_weight[:, None, :]


def _weights(axis: tuple[Array, ...], bins: int, samples: int) -> tuple[Array, Array, Array]:
    """Of pixels in bins, [R, bins, pixels]; of each region the pixels from `first` [R] to `behind` [R] of the map."""
    low, high, low_weight, high_weight = axis
    first, behind = low.min(axis=1), high.max(axis=1) + 1
    weights = np.zeros((len(low), bins, int((behind - first).max())), low_weight.dtype)
    region, number = np.arange(len(low))[:, None], np.arange(bins).repeat(samples)[None]
    scale = low_weight.dtype.type(samples)
    for place, weight in ((low, low_weight), (high, high_weight)):
        np.add.at(weights, (region, number, place - first[:, None]), weight / scale)
    return weights, first, behind


def _by_products(
    pixels: Array,
    image: Array,
    y: tuple[Array, ...],
    x: tuple[Array, ...],
    bins: tuple[int, int],
    counts: tuple[int, int],
) -> Iterator[Array]:
    """The bins [bins y, bins x, C] of one region after the other; pixels: [N, H, W, C], all of them finite."""
    for begin in range(0, len(image), _TOGETHER):
        some = slice(begin, begin + _TOGETHER)
        rows, top, bottom = _weights(tuple(a[some] for a in y), bins[0], counts[0])
        columns, left, right = _weights(tuple(a[some] for a in x), bins[1], counts[1])
        for i, n in enumerate(image[some]):
            window = pixels[n, top[i] : bottom[i], left[i] : right[i]]
            height, width, channels = window.shape
            by_rows = rows[i, :, :height] @ window.reshape(height, width * channels)
            yield columns[i, :, :width] @ by_rows.reshape(-1, width, channels)


@kernel("roi_align", place=("cpu", "cuda"), dtypes=FLOATS)
def roi_align(
    X: Array,
    ROIs: Array,
    RoisNum: Array | None = None,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    pooled = (pooled_height, pooled_width)
    out = xp.zeros((len(ROIs), X.shape[1], *pooled), X.dtype)
    if not out.size:
        return out
    image = image_of_region(ROIs, RoisNum, ctx.lod("ROIs"), len(X), "roi_align")
    pixels = xp.ascontiguousarray(X.transpose(0, 2, 3, 1))
    # a product would carry NaN and infinities to all bins of a region
    by_products = xp is np and bool(np.isfinite(pixels).all())
    for part, ny, nx, img, y, x in _groups(X.shape, host(ROIs), image, pooled, spatial_scale, sampling_ratio, aligned):
        if by_products:
            for region, found in zip(part, _by_products(pixels, img, y, x, pooled, (ny, nx)), strict=True):
                out[region] = found.transpose(2, 0, 1)
            continue
        total = xp.zeros((len(part), y[0].shape[1], x[0].shape[1], X.shape[1]), X.dtype)
        for row, column, weight in _corners(y, x, xp):
            total += pixels[xp.asarray(img)[:, None, None], row, column] * weight[..., None]
        bins = total.reshape(len(part), pooled[0], ny, pooled[1], nx, X.shape[1]).mean(axis=(2, 4))
        out[xp.asarray(part)] = bins.transpose(0, 3, 1, 2)
    return out


@kernel("roi_align_grad", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def roi_align_grad(
    X: ShapeOnly,
    ROIs: Array,
    Out_grad: Array,
    RoisNum: Array | None = None,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    n, c, h, w = X.shape
    dx = xp.zeros((n * h * w, c), Out_grad.dtype)
    if len(ROIs) and dx.size:
        pooled = (pooled_height, pooled_width)
        image = image_of_region(ROIs, RoisNum, ctx.lod("ROIs"), n, "roi_align_grad")
        grad = Out_grad.transpose(0, 2, 3, 1)
        sampling = pooled, spatial_scale, sampling_ratio, aligned
        for part, ny, nx, img, y, x in _groups(X.shape, host(ROIs), image, *sampling):
            share = (grad[xp.asarray(part)] / Out_grad.dtype.type(ny * nx)).repeat(ny, axis=1).repeat(nx, axis=2)
            for row, column, weight in _corners(y, x, xp):
                place = (xp.asarray(img)[:, None, None] * h + row) * w + column
                xp.add.at(dx, place.reshape(-1), (share * weight[..., None]).reshape(-1, c))
    return xp.ascontiguousarray(dx.reshape(n, h, w, c).transpose(0, 3, 1, 2))
