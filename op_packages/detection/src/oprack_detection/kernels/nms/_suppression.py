"""Greedy non-maximum suppression, and the choice of detections of one image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from oprack.kernel import Array

from oprack_detection.kernels._boxes import areas, overlaps
from oprack_detection.kernels.nms._polygons import polygon_overlaps

_BLOCK = 128  # candidates that are compared with each other at once
_PAIRS = 1 << 15  # pairs of boxes whose overlaps are computed at once, so that they stay in the caches


def descending(scores: Array) -> Array:
    """Indices that sort scores from high to low; equal ones keep their order."""
    return np.argsort(-scores, kind="stable")


def suppress(boxes: Array, threshold: float, eta: float, pixel: int) -> Array:
    """Indices of the boxes [K, 4], best first, that overlap no better kept box by more than `threshold`.

    Boxes of more numbers are polygons, for which `pixel` does not count. eta < 1 lowers the threshold after each kept
    box while it is above 0.5.
    """
    if eta < 1 and threshold > 0.5:
        return _suppress_adaptively(boxes, threshold, eta, pixel)
    kept, alive = [], np.arange(len(boxes))
    while len(alive):
        head, alive = alive[:_BLOCK], alive[_BLOCK:]
        chosen = head[_greedy(_bits(boxes[head], threshold, pixel), range(len(head)))]
        kept.append(chosen)
        if len(alive):
            far = [near.any(axis=0) for near in _near(boxes[chosen], boxes[alive], threshold, pixel)]
            alive = alive[~np.logical_or.reduce(far)]
    return np.concatenate(kept) if kept else np.empty(0, np.int64)


def suppress_each(boxes: Array, orders: Sequence[Array], threshold: float, eta: float, pixel: int) -> list[Array]:
    """What `suppress` keeps of each row of candidates: indices of boxes [M, 4], which all rows share.

    Where rows have candidates in common, pairs of boxes are compared once for all of them.
    """
    used = np.unique(np.concatenate(orders))
    if (eta < 1 and threshold > 0.5) or 2 * len(used) ** 2 > sum(len(order) ** 2 for order in orders):
        return [order[suppress(boxes[order], threshold, eta, pixel)] for order in orders]
    bits = _bits(boxes[used], threshold, pixel)
    return [used[_greedy(bits, np.searchsorted(used, order).tolist())] for order in orders]


def pair_overlaps(a: Array, b: Array, pixel: int, above: float = 0.0) -> Array:
    """Overlaps of boxes; those of polygons may be 0 where they are not more than `above`."""
    return overlaps(a, b, pixel, np) if a.shape[-1] == 4 else polygon_overlaps(a, b, above)


def _near(a: Array, b: Array, threshold: float, pixel: int) -> Iterator[Array]:
    """Rows [K, len(b)], some at a time: which boxes of `a` overlap which of `b` by more than a threshold."""
    step = max(1, _PAIRS // max(1, len(b)))
    a, b = np.asfortranarray(a), np.asfortranarray(b)  # each coordinate in a row
    if not pixel and a.shape[-1] == 4 and a.dtype == b.dtype and len(a) and len(b):
        sizes = [areas(boxes, pixel, np) for boxes in (a, b)]
        if all(s.min() > 0 and np.isfinite(s.max()) for s in sizes):
            yield from _near_boxes(a, b, *sizes, threshold, min(step, len(a)))
            return
    for i in range(0, len(a), step):
        yield pair_overlaps(a[i : i + step, None], b[None], pixel, threshold) > threshold


def _near_boxes(a: Array, b: Array, a_sizes: Array, b_sizes: Array, threshold: float, step: int) -> Iterator[Array]:
    """What `_near` gives of boxes that have an area, step by step as `overlaps` computes it, in memory used again."""
    memory, none = np.empty((3, step, len(b)), a.dtype), a.dtype.type(0)
    for i in range(0, len(a), step):
        some = a[i : i + step, None]
        width, height, other = memory[:, : len(some)]
        for extent, first, last in ((width, 0, 2), (height, 1, 3)):
            np.minimum(some[..., last], b[:, last], out=extent)
            extent -= np.maximum(some[..., first], b[:, first], out=other)
            np.maximum(extent, none, out=extent)
        inside = np.multiply(width, height, out=width)
        union = np.add(a_sizes[i : i + step, None], b_sizes, out=height)
        union -= inside
        inside /= union
        yield inside > threshold


def _bits(boxes: Array, threshold: float, pixel: int) -> list[int]:
    """For each box the boxes that it overlaps by more than a threshold, as bits of a number."""
    packed = [np.packbits(near, axis=1, bitorder="little") for near in _near(boxes, boxes, threshold, pixel)]
    return [int.from_bytes(row.tobytes(), "little") for rows in packed for row in rows]


def _greedy(near: Sequence[int], order: Iterable[int]) -> list[int]:
    """What is kept of candidates, best first, when each one that is kept excludes those near to it."""
    gone, kept = 0, []
    for i in order:
        if not gone >> i & 1:
            kept.append(i)
            gone |= near[i]
    return kept


def _suppress_adaptively(boxes: Array, threshold: float, eta: float, pixel: int) -> Array:
    kept, at = [], 0
    worst = np.zeros(len(boxes), boxes.dtype)
    while at < len(boxes):
        kept.append(at)
        if threshold > 0.5:
            threshold *= eta
        rest = slice(at + 1, None)
        np.maximum(worst[rest], pair_overlaps(boxes[at], boxes[rest], pixel), out=worst[rest])
        free = worst[rest] <= threshold
        at += 1 + (int(free.argmax()) if free.any() else len(boxes))
    return np.array(kept, dtype=np.int64)


def best(scores: Array, threshold: float, top_k: int) -> Array:
    """Indices of the scores above a threshold, best first, at most top_k of them (-1: all)."""
    above = np.flatnonzero(scores > threshold)
    if -1 < 2 * top_k < len(above):
        values, last = scores[above], len(above) - top_k
        # with all that are as high as the last of them, which go by their order
        above = above[values >= np.partition(values, last)[last]] if top_k else above[:0]
    order = above[descending(scores[above])]
    return order[:top_k] if top_k > -1 else order


def keep_best(labels: Array, index: Array, scores: Array, keep_top_k: int) -> tuple[Array, Array]:
    """(labels, index) of the keep_top_k best detections (-1: all), by class and from high to low score in each."""
    if keep_top_k > -1 and len(labels) > keep_top_k:
        chosen = descending(scores)[:keep_top_k]
        chosen = chosen[np.argsort(labels[chosen], kind="stable")]
        return labels[chosen], index[chosen]
    return labels, index
