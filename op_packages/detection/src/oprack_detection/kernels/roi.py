"""Kernels of region pooling."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_detection.kernels._regions import host, image_of_region

# roi_perspective_transform --------------------------------------------------------------------------------------------
_NEAR = 1e-4  # of a side counts as on it


def _matrices(x: Array, y: Array, height: int, width: int) -> Array:
    """[R, 9]: from places of the rectangle to those of quadrangles with these corners [R, 4]."""
    lengths = np.hypot(x - np.roll(x, -1, axis=1), y - np.roll(y, -1, axis=1))
    wide, high = (lengths[:, 0] + lengths[:, 2]) / 2, (lengths[:, 1] + lengths[:, 3]) / 2
    rows = max(2, height)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = np.nan_to_num(np.floor(wide * (rows - 1) / high + 0.5), posinf=width) + 1
    columns = np.maximum(2, np.minimum(columns, width))
    (dx1, dx2, dx3), (dy1, dy2, dy3) = (
        (c[:, 1] - c[:, 2], c[:, 3] - c[:, 2], c[:, 0] - c[:, 1] + c[:, 2] - c[:, 3]) for c in (x, y)
    )
    area = dx1 * dy2 - dx2 * dy1 + 1e-5
    m = np.ones((len(x), 9))
    m[:, 6] = (dx3 * dy2 - dx2 * dy3) / area / (columns - 1)
    m[:, 7] = (dx1 * dy3 - dx3 * dy1) / area / (rows - 1)
    for first, c in ((0, x), (3, y)):
        m[:, first] = (c[:, 1] - c[:, 0] + m[:, 6] * (columns - 1) * c[:, 1]) / (columns - 1)
        m[:, first + 1] = (c[:, 3] - c[:, 0] + m[:, 7] * (rows - 1) * c[:, 3]) / (rows - 1)
        m[:, first + 2] = c[:, 0]
    return m


def _inside(px: Array, py: Array, x: Array, y: Array) -> Array:
    """[R, points]: whether points [R, points] lie in quadrangles with these corners, or on a side."""
    on_side, crossings = np.zeros(px.shape, bool), np.zeros(px.shape, np.int64)
    for i in range(4):
        xs, ys, xe, ye = (a[:, k % 4, None] for k, a in ((i, x), (i, y), (i + 1, x), (i + 1, y)))
        flat = np.abs(ys - ye) < _NEAR
        low, high = np.minimum(ys, ye), np.maximum(ys, ye)
        along = (px >= np.minimum(xs, xe) - _NEAR) & (px <= np.maximum(xs, xe) + _NEAR) & (np.abs(py - ys) < _NEAR)
        cut = (py - ys) * (xe - xs) / np.where(flat, 1, ye - ys) + xs
        met = (np.abs(cut - px) < _NEAR) & (py >= low - _NEAR) & (py <= high + _NEAR)
        on_side |= np.where(flat, along, met)
        crossings += ~flat & (py - low > _NEAR) & (py - high <= _NEAR) & (cut - px > _NEAR)
    return on_side | (crossings % 2 == 1)


@kernel("roi_perspective_transform", dtypes=FLOATS)
def roi_perspective_transform(
    X: Array, ROIs: Array, *, spatial_scale: float, transformed_height: int, transformed_width: int, ctx: KernelContext
) -> tuple[Array, Array, Array, Array, Array]:
    """All samples of all quadrangles at once."""
    _, channels, height, width = X.shape
    corners = ROIs.astype(np.float64) * spatial_scale
    m = _matrices(corners[:, ::2], corners[:, 1::2], transformed_height, transformed_width)
    place = np.mgrid[:transformed_height, :transformed_width].reshape(2, -1)[::-1].astype(np.float64)
    u, v, w = (m[:, i : i + 1] * place[0] + m[:, i + 1 : i + 2] * place[1] + m[:, i + 2 : i + 3] for i in (0, 3, 6))
    x, y = u / w, v / w
    used = _inside(x, y, corners[:, ::2], corners[:, 1::2])
    used &= (x >= -0.5) & (x <= width - 0.5) & (y >= -0.5) & (y <= height - 0.5)
    x, y = np.clip(np.where(used, x, 0), 0, width - 1), np.clip(np.where(used, y, 0), 0, height - 1)
    left, low = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    right, high = np.minimum(left + 1, width - 1), np.minimum(low + 1, height - 1)
    dx, dy = x - left, y - low
    index = np.stack([low * width + left, low * width + right, high * width + left, high * width + right], axis=-1)
    weights = np.stack([(1 - dx) * (1 - dy), dx * (1 - dy), (1 - dx) * dy, dx * dy], axis=-1) * used[..., None]
    weights = weights.astype(X.dtype)
    image = image_of_region(ROIs, None, ctx.lod("ROIs"), len(X), ctx.op_type)
    maps = X.reshape(len(X), channels, height * width)
    samples = maps[image[:, None, None], :, index]  # [R, points, 4, C]
    out = (samples * weights[..., None]).sum(axis=2).transpose(0, 2, 1)
    size = (len(ROIs), transformed_height, transformed_width)
    mask = used.astype(np.int32).reshape(size[0], 1, *size[1:])
    kept = index.reshape(-1, 4).astype(np.int32), weights.reshape(-1, 4)
    return out.reshape(size[0], channels, *size[1:]).astype(X.dtype), mask, m.astype(X.dtype), *kept


@kernel("roi_perspective_transform_grad", dtypes=FLOATS)
def roi_perspective_transform_grad(
    X: ShapeOnly, ROIs: ShapeOnly, Out2InIdx: Array, Out2InWeights: Array, Out_grad: Array, *, ctx: KernelContext
) -> Array:
    """One sum over the pixels of each channel."""
    images, channels, height, width = X.shape
    regions = len(Out_grad)
    image = image_of_region(Out_grad, None, ctx.lod("ROIs"), images, ctx.op_type)
    grad = np.zeros((images * height * width, channels), Out_grad.dtype)
    place = image[:, None] * (height * width) + Out2InIdx.reshape(regions, -1)
    share = Out_grad.reshape(regions, channels, -1, 1) * Out2InWeights.reshape(regions, 1, -1, 4)
    np.add.at(grad, place.reshape(-1), share.transpose(0, 2, 3, 1).reshape(-1, channels))
    return grad.reshape(images, height, width, channels).transpose(0, 3, 1, 2).copy()


# roi_pool -------------------------------------------------------------------------------------------------------------
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
    inside: Any = (rows < high_y[:, None])[:, :, None] & (columns < high_x[:, None])[:, None, :]
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
                value, place = _bin(
                    maps, image[part], edges[0][part], edges[1][part], edges[2][part], edges[3][part], xp
                )
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
