"""Kernels of prroi_pool: the integral of a bilinear map over a bin is a sum of products of weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS

from oprack_detection.kernels._regions import image_of_region


class _Axis(NamedTuple):
    """Bins along one dim of each region."""

    weights: Array
    """Integrals of the pixels' hats over the bins [R, bins, pixels]."""
    size: Array
    """Sizes of the bins [R]."""
    low: Array
    """Hats at the bins' first sides [R, bins, pixels]."""
    high: Array
    """Hats at their last sides."""


def _axis(start: Array, end: Array, bins: int, pixels: int) -> _Axis:
    size = np.maximum(end - start, 0) / bins
    sides = start[:, None] + size[:, None] * np.arange(bins + 1)
    at = np.clip(sides[:, :, None] - np.arange(pixels), -1, 1)
    area = np.where(at < 0, (at + 1) ** 2 / 2, 1 - (1 - at) ** 2 / 2)
    hat = 1 - np.abs(at)
    return _Axis(area[:, 1:] - area[:, :-1], size, hat[:, :-1], hat[:, 1:])


def _axes(rois: Array, scale: float, bins: tuple[int, int], spatial: tuple[int, ...]) -> tuple[_Axis, _Axis]:
    """Those of y and x."""
    box = rois.astype(np.float64) * scale
    return _axis(box[:, 1], box[:, 3], bins[0], spatial[0]), _axis(box[:, 0], box[:, 2], bins[1], spatial[1])


def _inverse(y: _Axis, x: _Axis) -> Array:
    """1 / area of a region's bins; 0 where they are empty."""
    area = y.size * x.size
    return np.where(area > 0, 1 / np.where(area > 0, area, 1), 0)[:, None, None, None]


@kernel("prroi_pool", dtypes=FLOATS)
def prroi_pool(
    X: Array,
    ROIs: Array,
    BatchRoINums: Array | None = None,
    *,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    ctx: KernelContext,
) -> Array:
    image = image_of_region(ROIs, BatchRoINums, ctx.lod("ROIs"), len(X), ctx.op_type)
    y, x = _axes(ROIs, spatial_scale, (pooled_height, pooled_width), X.shape[2:])
    out = np.empty((len(ROIs), X.shape[1], pooled_height, pooled_width))
    for n in np.unique(image):
        of = image == n
        rows = np.tensordot(X[n], y.weights[of], axes=(1, 2))  # [C, W, R, rows of bins]
        out[of] = np.einsum("cwri,rjw->rcij", rows, x.weights[of])
    return (out * _inverse(y, x)).astype(X.dtype)


def _sides(near_start: Array, near_end: Array, bins: int) -> tuple[Array, Array]:
    """Slopes by a region's first and last side, from those by its bins' sides [R, bins]."""
    share = np.arange(bins + 1) / bins
    moved = near_start * (1 - share[:-1]) + near_end * (1 - share[1:])
    return moved.sum(axis=1), (near_start * share[:-1] + near_end * share[1:]).sum(axis=1)


@kernel("prroi_pool_grad", dtypes=FLOATS)
def prroi_pool_grad(
    X: Array,
    Out: Array,
    ROIs: Array,
    Out_grad: Array,
    BatchRoINums: Array | None = None,
    *,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    ctx: KernelContext,
) -> dict[str, Array]:
    image = image_of_region(ROIs, BatchRoINums, ctx.lod("ROIs"), len(X), ctx.op_type)
    y, x = _axes(ROIs, spatial_scale, (pooled_height, pooled_width), X.shape[2:])
    share = Out_grad * _inverse(y, x)
    grads = {}
    if ctx.wants("X@GRAD"):
        dx = np.zeros(X.shape)
        for n in np.unique(image):
            of = image == n
            columns = np.einsum("rcij,rjw->rciw", share[of], x.weights[of])
            dx[n] = np.einsum("rciw,rih->chw", columns, y.weights[of])
        grads["X@GRAD"] = dx.astype(X.dtype)
    if ctx.wants("ROIs@GRAD"):
        grads["ROIs@GRAD"] = (_by_corners(X, Out, share, image, y, x) * spatial_scale).astype(ROIs.dtype)
    return grads


def _by_corners(maps: Array, out: Array, share: Array, image: Array, y: _Axis, x: _Axis) -> Array:
    """How the sum of share * area * out changes with xmin, ymin, xmax, ymax in pixels of the maps, [R, 4]."""
    means = (share * out).sum(axis=1)  # by the area of a bin
    slopes = {name: np.zeros(means.shape) for name in ("top", "bottom", "left", "right")}
    for n in np.unique(image):
        of = image == n
        edges = {
            "top": (-y.low[of], x.weights[of]),
            "bottom": (y.high[of], x.weights[of]),
            "left": (y.weights[of], -x.low[of]),
            "right": (y.weights[of], x.high[of]),
        }
        for name, (rows, columns) in edges.items():
            line = np.einsum("cwri,rjw->rcij", np.tensordot(maps[n], rows, axes=(1, 2)), columns)
            slopes[name][of] = (line * share[of]).sum(axis=1)
    height, width = y.size[:, None, None], x.size[:, None, None]
    top, bottom = ((slopes[k] + sign * means * width).sum(axis=2) for k, sign in (("top", 1), ("bottom", -1)))
    left, right = ((slopes[k] + sign * means * height).sum(axis=1) for k, sign in (("left", 1), ("right", -1)))
    y1, y2 = _sides(top, bottom, top.shape[1])
    x1, x2 = _sides(left, right, left.shape[1])
    return np.stack([x1, y1, x2, y2], axis=1)
