"""Polygons [x1, y1, x2, y2, ...]: areas and overlaps of many pairs at once, in double precision.

Points belong to a polygon by the even-odd rule, so any order of the corners, dents and crossing sides will do.
"""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array

_ELEMENTS = 1 << 20  # of the largest temporary array


def polygon_areas(polygons: Array) -> Array:
    """Areas [...] of polygons [..., 2 corners], by the shoelace formula; what is run round the other way counts off."""
    x, y = _coordinates(polygons)
    return np.abs(_cross(x, y, np.roll(x, -1, -1), np.roll(y, -1, -1)).sum(-1)) / 2


def polygon_overlaps(a: Array, b: Array, above: float = 0.0) -> Array:
    """Intersection over union of polygons, which broadcast; 0 where one has no area, or it cannot be more than `above`.

    What they share is at most the smaller of them, and what the upright boxes around them share; most pairs need no
    more than that.
    """
    shape = np.broadcast_shapes(a.shape, b.shape)
    areas = polygon_areas(a), polygon_areas(b)
    union = areas[0] + areas[1]
    inside = np.zeros(shape[:-1])
    most = np.minimum(np.minimum(*areas), _shared_by_boxes(a, b)) * (1 + 1e-6)
    near = (most > 0) & (most > above * (union - most))
    chosen = [np.broadcast_to(p, shape)[near] for p in (a, b)]
    count, sides = len(chosen[0]), shape[-1]
    step = max(1, _ELEMENTS // (sides * sides * sides))
    parts = [_intersections(chosen[0][i : i + step], chosen[1][i : i + step]) for i in range(0, count, step)]
    inside[near] = np.concatenate(parts) if parts else 0
    union = union - inside
    return (inside / np.where(union > 0, union, 1)).astype(a.dtype)


def _coordinates(polygons: Array) -> tuple[Array, Array]:
    """x and y [..., corners] of polygons [..., 2 corners]."""
    return polygons[..., 0::2].astype(np.float64), polygons[..., 1::2].astype(np.float64)


def _cross(ax: Array, ay: Array, bx: Array, by: Array) -> Array:
    return ax * by - ay * bx


def _shared_by_boxes(a: Array, b: Array) -> Array:
    """Area that the upright boxes around two polygons share."""
    shared = 1.0
    for p, q in zip(_coordinates(a), _coordinates(b), strict=True):
        shared = shared * np.maximum(np.minimum(p.max(-1), q.max(-1)) - np.maximum(p.min(-1), q.min(-1)), 0)
    return shared


def _intersections(a: Array, b: Array) -> Array:
    """Areas [K] that polygons [K, 2 corners] share, pair by pair.

    Horizontal lines through all corners and crossings cut the plane into slabs, in which no two sides cross: the part
    of a line that lies in both polygons has a length that is linear in y there, so its middle value times the height of
    the slab is the area.
    """
    ax, ay = _coordinates(a)
    bx, by = _coordinates(b)
    half = ax.shape[1]
    x, y = (np.concatenate([p - p[:, :1], q - p[:, :1]], 1) for p, q in ((ax, bx), (ay, by)))  # products stay small
    end_x, end_y = (np.concatenate([np.roll(p[:, :half], -1, 1), np.roll(p[:, half:], -1, 1)], 1) for p in (x, y))
    dx, dy = end_x - x, end_y - y
    cuts = np.sort(np.concatenate([y, _crossings(x, y, dx, dy)], 1), axis=1)
    heights = np.diff(cuts, axis=1)
    middle = (cuts[:, :-1] + heights / 2)[:, :, None]
    crossed = (y[:, None] > middle) != (end_y[:, None] > middle)  # an even number of them
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.where(crossed, x[:, None] + (middle - y[:, None]) / dy[:, None] * dx[:, None], np.inf)
    order = np.argsort(at, axis=2)
    at = np.take_along_axis(at, order, 2)
    crossed = np.take_along_axis(crossed, order, 2)
    of_a = order < half
    inside = (np.cumsum(crossed & of_a, axis=2) & np.cumsum(crossed & ~of_a, axis=2) & 1)[:, :, :-1].astype(bool)
    left, right = np.where(inside, at[:, :, :-1], 0), np.where(inside, at[:, :, 1:], 0)
    return ((right - left).sum(2) * heights).sum(1)


def _crossings(x: Array, y: Array, dx: Array, dy: Array) -> Array:
    """y [K, most crossings of a pair] where two sides cross; the greatest y of the corners where there are fewer."""
    i, j = np.triu_indices(x.shape[1], 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = _cross(dx[:, i], dy[:, i], dx[:, j], dy[:, j])
        gap_x, gap_y = x[:, j] - x[:, i], y[:, j] - y[:, i]
        first = _cross(gap_x, gap_y, dx[:, j], dy[:, j]) / slope
        second = _cross(gap_x, gap_y, dx[:, i], dy[:, i]) / slope
        cross = (first > 0) & (first < 1) & (second > 0) & (second < 1)
        at = np.where(cross, y[:, i] + first * dy[:, i], y.max(axis=1, keepdims=True))
    return np.sort(at, axis=1)[:, : cross.sum(axis=1).max()]
