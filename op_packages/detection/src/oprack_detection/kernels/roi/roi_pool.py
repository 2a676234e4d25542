"""Kernels of roi_pool."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_detection.kernels._regions import host, image_of_region

_CHUNK = 1 << 22  # elements of a gathered block: bounds the memory that many regions take


def _round(x: Array) -> Array:
    """To the nearest integer, halves away from 0."""
    return (np.sign(x) * np.floor(np.abs(x) + 0.5)).astype(np.int64)


def _edges(start: Array, end: Array, bins: int, length: int) -> tuple[Array, Array]:
    """First pixel of each bin and the one after its last, [R, bins]; bins of a region may share pixels."""
    size = np.maximum(end - start + 1, 1) / bins
    low = np.floor(np.arange(bins) * size[:, None]).astype(np.int64) + start[:, None]
    high = np.ceil(np.arange(1, bins + 1) * size[:, None]).astype(np.int64) + start[:, None]
    return np.clip(low, 0, length), np.clip(high, 0, length)


def _bin(
    maps: Array, image: Array, low_y: Array, high_y: Array, low_x: Array, high_x: Array, xp: ArrayModule
) -> tuple[Array, Array]:
    """Maximum and its position [R, C] of one bin per region; maps: [N, H, W, C]."""
    height, width = maps.shape[1:3]
    rows = low_y[:, None] + np.arange(max(int((high_y - low_y).max(initial=0)), 1))
    columns = low_x[:, None] + np.arange(max(int((high_x - low_x).max(initial=0)), 1))
    inside = (rows < high_y[:, None])[:, :, None] & (columns < high_x[:, None])[:, None, :]
    rows, columns = np.minimum(rows, height - 1), np.minimum(columns, width - 1)
    flat = xp.asarray((rows[:, :, None] * width + columns[:, None, :]).reshape(len(image), -1))
    empty = xp.asarray(~inside.any(axis=(1, 2))[:, None])
    inside, image, rows, columns = (xp.asarray(a) for a in (inside, image, rows, columns))
    window = maps[image[:, None, None], rows[:, :, None], columns[:, None, :]]
    window = xp.where(inside[..., None], window, -xp.inf).reshape(len(image), -1, maps.shape[3])
    first = window.argmax(axis=1)
    value = xp.take_along_axis(window, first[:, None], axis=1)[:, 0]
    place = xp.take_along_axis(flat, first, axis=1)
    return xp.where(empty, 0, value), xp.where(empty, -1, place)


@kernel("roi_pool", place=("cpu", "cuda"), dtypes=FLOATS)
def roi_pool(
    X: Array,
    ROIs: Array,
    RoisNum: Array | None = None,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    shape = (len(ROIs), X.shape[1], pooled_height, pooled_width)
    out, argmax = xp.zeros(shape, X.dtype), xp.full(shape, -1, xp.int64)
    if not out.size:
        return out, argmax
    image = image_of_region(ROIs, RoisNum, ctx.lod("ROIs"), len(X), "roi_pool")
    box = _round(host(ROIs) * ROIs.dtype.type(spatial_scale))
    low_y, high_y = _edges(box[:, 1], box[:, 3], pooled_height, X.shape[2])
    low_x, high_x = _edges(box[:, 0], box[:, 2], pooled_width, X.shape[3])
    maps = xp.ascontiguousarray(X.transpose(0, 2, 3, 1))
    for i in range(pooled_height):
        for j in range(pooled_width):
            edges = low_y[:, i], high_y[:, i], low_x[:, j], high_x[:, j]
            largest = max(int((edges[1] - edges[0]).max()), 1) * max(int((edges[3] - edges[2]).max()), 1)
            step = max(1, _CHUNK // (largest * X.shape[1]))
            for a in range(0, len(ROIs), step):
                part = slice(a, a + step)
                value, place = _bin(maps, image[part], *(e[part] for e in edges), xp)
                out[part, :, i, j], argmax[part, :, i, j] = value, place
    return out, argmax


@kernel("roi_pool_grad", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def roi_pool_grad(
    X: ShapeOnly,
    ROIs: Array,
    Argmax: Array,
    Out_grad: Array,
    RoisNum: Array | None = None,
    *,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    n, c, h, w = X.shape
    dx = xp.zeros(n * c * h * w, Out_grad.dtype)
    if len(ROIs):
        image = image_of_region(ROIs, RoisNum, ctx.lod("ROIs"), n, "roi_pool_grad")
        plane = (xp.asarray(image)[:, None] * c + xp.arange(c)) * (h * w)
        found = Argmax >= 0  # an empty bin adds nothing
        place = xp.where(found, plane[:, :, None, None] + Argmax, 0)
        xp.add.at(dx, place, xp.where(found, Out_grad, Out_grad.dtype.type(0)))
    return dx.reshape(n, c, h, w)
