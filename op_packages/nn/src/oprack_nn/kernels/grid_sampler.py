"""Kernels of grid_sampler and its gradient, for images and volumes.

Points are handled per spatial dim: position along it, and slope of the position by the grid's number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

_PLACES = ("cpu", "cuda")


def _reflect(p: Array, low: float, high: float, xp: ArrayModule) -> tuple[Array, Array]:
    """(p mirrored into [low, high], +1 or -1 by which side it came from)."""
    span = high - low
    if span <= 0:
        return xp.zeros_like(p), xp.zeros_like(p)
    away = xp.abs(p - low)
    away = away - xp.floor(away / (2 * span)) * (2 * span)
    back = away > span
    sign = xp.where(p < low, -1, 1) * xp.where(back, -1, 1)
    return xp.where(back, 2 * span - away, away) + low, sign.astype(p.dtype)


def _position(g: Array, size: int, padding_mode: str, align_corners: bool, xp: ArrayModule) -> tuple[Array, Array]:
    """Position in elements of a dim, and its slope by g."""
    slope = (size - 1) / 2 if align_corners else size / 2
    p = (g + 1) * slope if align_corners else ((g + 1) * size - 1) / 2
    slope = xp.full_like(p, slope)
    if padding_mode == "reflection":
        p, sign = _reflect(p, 0, size - 1, xp) if align_corners else _reflect(p, -0.5, size - 0.5, xp)
        slope = slope * sign
    if padding_mode != "zeros":
        slope = xp.where((p < 0) | (p > size - 1), 0, slope)
        p = xp.clip(p, 0, size - 1)
    return p, slope


def _positions(
    grid: Array, spatial: tuple[int, ...], padding_mode: str, align_corners: bool, xp: ArrayModule
) -> tuple[list[Array], list[Array]]:
    """Lists over the spatial dims of X of positions and slopes, each [N, P]; Grid names the last dim first."""
    rank = len(spatial)
    points = grid.reshape(grid.shape[0], math.prod(grid.shape[1:-1]), rank)
    found = [
        _position(points[..., rank - 1 - d], size, padding_mode, align_corners, xp) for d, size in enumerate(spatial)
    ]
    return [p for p, _ in found], [s for _, s in found]


def _corners(
    positions: Sequence[Array], spatial: tuple[int, ...], mode: str, xp: ArrayModule
) -> Iterator[tuple[tuple[int, ...], Array, Array, list[Array]]]:
    """(corner, index into the flattened spatial dims, inside, weights per dim) of the elements around each point."""
    if mode == "nearest":
        lows = [xp.copysign(xp.floor(xp.abs(p) + 0.5), p) for p in positions]
        choices: list[tuple[int, ...]] = [(0,)] * len(spatial)
    else:
        lows = [xp.floor(p) for p in positions]
        choices = [(0, 1)] * len(spatial)
    for corner in product(*choices):
        index: Array | Any = 0  # an array from the first dim on, as the next one
        inside: Array | Any = True
        weights: list[Array] = []
        for p, low, size, step in zip(positions, lows, spatial, corner, strict=True):
            at = low + step
            # Paddle: the nearest element of a point counts as long as it is inside; in volumes the point has to be
            seen = p if mode == "nearest" and len(spatial) == 3 else at
            inside = inside & (seen >= 0) & (seen <= size - 1)
            index = index * size + xp.clip(at, 0, size - 1).astype("int64")
            if mode == "nearest":
                weights.append(xp.ones_like(p))
            else:
                weights.append(p - low if step else 1 - (p - low))
        yield corner, index, inside, weights


def _rows(x: Array, xp: ArrayModule) -> Array:
    """[N, C, *spatial] as rows of channels, [N P, C]."""
    n, c = x.shape[:2]
    return xp.ascontiguousarray(x.reshape(n, c, math.prod(x.shape[2:])).transpose(0, 2, 1)).reshape(-1, c)


def _images(rows: Array, shape: tuple[int, ...], xp: ArrayModule) -> Array:
    """The inverse of _rows."""
    n, c, *spatial = shape
    return xp.ascontiguousarray(rows.reshape(n, math.prod(spatial), c).transpose(0, 2, 1)).reshape(shape)


def _row_index(index: Array, size: int, xp: ArrayModule) -> Array:
    return (index + xp.arange(index.shape[0])[:, None] * size).reshape(-1)


@kernel("grid_sampler", place=_PLACES, dtypes=FLOATS)
def grid_sampler(X: Array, Grid: Array, *, mode: str, padding_mode: str, align_corners: bool, xp: ArrayModule) -> Array:
    spatial = X.shape[2:]
    positions, _ = _positions(Grid, spatial, padding_mode, align_corners, xp)
    table = _rows(X, xp)
    total = xp.zeros((Grid.shape[0] * math.prod(Grid.shape[1:-1]), X.shape[1]), X.dtype)
    for _, index, inside, weights in _corners(positions, spatial, mode, xp):
        weight = (math.prod(weights) * inside).reshape(-1, 1).astype(X.dtype)
        total += table.take(_row_index(index, math.prod(spatial), xp), axis=0) * weight
    return _images(total, (*X.shape[:2], *Grid.shape[1:-1]), xp)


@kernel("grid_sampler_grad", place=_PLACES, dtypes=FLOATS, deterministic={"cpu"})
def grid_sampler_grad(
    X: Array,
    Grid: Array,
    Output_grad: Array,
    *,
    mode: str,
    padding_mode: str,
    align_corners: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    spatial = X.shape[2:]
    positions, slopes = _positions(Grid, spatial, padding_mode, align_corners, xp)
    table, dy = _rows(X, xp), _rows(Output_grad, xp)
    dx = xp.zeros_like(table)
    dp = [xp.zeros_like(p) for p in positions]
    for corner, index, inside, weights in _corners(positions, spatial, mode, xp):
        rows = _row_index(index, math.prod(spatial), xp)
        if ctx.wants("X@GRAD"):
            weight = (math.prod(weights) * inside).reshape(-1, 1).astype(X.dtype)
            xp.add.at(dx, rows, dy * weight)
        if ctx.wants("Grid@GRAD") and mode == "bilinear":
            value = (table.take(rows, axis=0) * dy).sum(axis=1).reshape(inside.shape) * inside
            for d, step in enumerate(corner):
                others = math.prod(w for k, w in enumerate(weights) if k != d)
                dp[d] += value * others * (1 if step else -1)
    grads = {}
    if ctx.wants("X@GRAD"):
        grads["X_grad"] = _images(dx, X.shape, xp)
    if ctx.wants("Grid@GRAD"):
        by_grid = [g * s for g, s in zip(dp, slopes, strict=True)]
        grads["Grid_grad"] = xp.stack(by_grid[::-1], axis=-1).reshape(Grid.shape).astype(Grid.dtype)
    return grads
