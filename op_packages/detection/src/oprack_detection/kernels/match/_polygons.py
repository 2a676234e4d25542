"""Outlines of objects as polygons, and the pixels within them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from oprack.kernel import Array

_FINE = 5  # an outline is rounded to a fifth of a pixel before its pixels are decided
_FAR = 1e8  # corners beyond so many pixels are as good as this far away
_TRIES = 4  # steps around an estimate among which the exact one is


class Outlines(NamedTuple):
    """Polygons of objects: their corners [S, 2], where each polygon's begin, and where each object's polygons do."""

    corners: Array
    polygons: Array
    objects: Array

    def boxes(self, objects: Array) -> Array:
        """[len(objects), 4]: the box around each; one that overlaps nothing around an object without a corner."""
        found = np.tile(np.array([np.inf, np.inf, -np.inf, -np.inf], self.corners.dtype), (len(objects), 1))
        for row, i in enumerate(objects):
            corners = self.corners[self.polygons[self.objects[i]] : self.polygons[self.objects[i + 1]]]
            if len(corners):
                found[row] = *corners.min(axis=0), *corners.max(axis=0)
        return found


def _ranges(begins: Array, ends: Array) -> tuple[Array, Array]:
    """The numbers of ranges side by side, and which range each is of."""
    counts = ends - begins
    owner = np.repeat(np.arange(len(counts)), counts)
    return np.arange(len(owner)) + (begins - (np.cumsum(counts) - counts))[owner], owner


def rasters(outlines: Outlines, objects: Array, rois: Array, size: int) -> Array:
    """Which pixels of regions lie in a polygon of their objects.

    Args:
        outlines: Polygons.
        objects: The object of each region.
        rois: Regions [R, 4] in the pixels of the polygons.
        size: Pixels of a region each way.

    Returns:
        [R, size * size], bool.
    """
    polygons, region = _ranges(outlines.objects[objects], outlines.objects[objects + 1])
    corner, polygon = _ranges(outlines.polygons[polygons], outlines.polygons[polygons + 1])
    of = region[polygon]
    extent = np.maximum(rois[:, 2:] - rois[:, :2], rois.dtype.type(1))
    places = (outlines.corners[corner] - rois[of, :2]) * rois.dtype.type(size) / extent[of]
    fine = np.floor(np.clip(places.astype(np.float64), -_FAR, _FAR) * _FINE + 0.5).astype(np.int64)
    last = np.append(polygon[1:] != polygon[:-1], True)[: len(polygon)]
    first = np.searchsorted(polygon, polygon)  # where the polygon of each corner begins
    after = np.where(last, first, np.arange(len(polygon)) + 1)
    column, row, edge = _crossings(fine, fine[after], size)
    return _filled(polygon[edge], column * size + row, region, len(objects), size)


def _crossings(start: Array, end: Array, size: int) -> tuple[Array, Array, Array]:
    """Where edges cross the middles of columns of pixels: column, the row from which on pixels are beyond, edge."""
    wide = np.abs(end[:, 0] - start[:, 0]) >= np.abs(end[:, 1] - start[:, 1])
    turned = np.where(wide, start[:, 0] > end[:, 0], start[:, 1] > end[:, 1])[:, None]
    begin, stop = np.where(turned, end, start), np.where(turned, start, end)
    left = _FINE * np.arange(size) + _FINE // 2  # an edge crosses between this fine column and the next
    low, high = np.minimum(begin[:, 0], stop[:, 0]), np.maximum(begin[:, 0], stop[:, 0])
    edge, column = np.nonzero((low[:, None] <= left) & (high[:, None] > left))
    (x, y), (dx, dy) = begin[edge].T, (stop - begin)[edge].T
    flat = wide[edge]
    slope = np.where(flat, dy, dx) / np.maximum(np.where(flat, dx, dy), 1)
    along = left[column] - x
    rows = np.minimum(*(np.trunc(y + slope * (along + k) + 0.5) for k in (0, 1)))
    rows = np.where(flat, rows, y + _steps_before(x, slope, left[column], flat))
    above = np.clip((rows + 0.5) / _FINE - 0.5, 0, size)
    return column, np.ceil(above).astype(np.int64), edge


def _steps_before(x: Array, slope: Array, left: Array, flat: Array) -> Array:
    """Of steep edges: the steps down after which the next one enters or leaves the fine column `left`."""
    steep = np.where(flat, 1.0, slope)
    guess = np.floor((left + 0.5 - x) / steep) - 1
    steps = guess + _TRIES
    for k in reversed(range(_TRIES)):
        at = np.trunc(x + steep * (guess + k) + 0.5)
        beyond = np.where(steep > 0, at > left, at <= left)
        steps = np.where(beyond, guess + k, steps)
    return steps - 1


def _filled(polygon: Array, place: Array, region: Array, regions: int, size: int) -> Array:
    """Pixels behind an odd number of crossings, column by column, of any polygon of a region."""
    pixels = size * size
    inside = place < pixels
    counts = np.bincount(polygon[inside] * pixels + place[inside], minlength=len(region) * pixels)
    odd = np.cumsum(counts.reshape(len(region), pixels), axis=1) % 2 == 1
    found = np.zeros((regions, pixels), bool)
    np.logical_or.at(found, region, odd)
    return found.reshape(regions, size, size).transpose(0, 2, 1).reshape(regions, pixels)
