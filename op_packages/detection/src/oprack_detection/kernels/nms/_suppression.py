"""Greedy non-maximum suppression, and the choice of detections of one image."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array

from oprack_detection.kernels._boxes import overlaps
from oprack_detection.kernels.nms._polygons import polygon_overlaps

_BLOCK = 256  # candidates that are compared with each other at once


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
        chosen = head[_greedy(pair_overlaps(boxes[head, None], boxes[head], pixel, threshold) > threshold)]
        kept.append(chosen)
        if len(alive):
            far = pair_overlaps(boxes[chosen, None], boxes[alive], pixel, threshold) > threshold
            alive = alive[~far.any(axis=0)]
    return np.concatenate(kept) if kept else np.empty(0, np.int64)


def pair_overlaps(a: Array, b: Array, pixel: int, above: float = 0.0) -> Array:
    """Overlaps of boxes; those of polygons may be 0 where they are not more than `above`."""
    return overlaps(a, b, pixel, np) if a.shape[-1] == 4 else polygon_overlaps(a, b, above)


def _greedy(near: Array) -> list[int]:
    """Indices that are kept of candidates in order; near [K, K]: which of them exclude each other."""
    rows = np.packbits(near, axis=1, bitorder="little")
    alive, kept = (1 << len(near)) - 1, []
    while alive:
        i = (alive & -alive).bit_length() - 1
        kept.append(i)
        alive &= ~(int.from_bytes(rows[i].tobytes(), "little") | 1 << i)
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
    order = above[descending(scores[above])]
    return order[:top_k] if top_k > -1 else order


def keep_best(labels: Array, index: Array, scores: Array, keep_top_k: int) -> tuple[Array, Array]:
    """(labels, index) of the keep_top_k best detections (-1: all), by class and from high to low score in each."""
    if keep_top_k > -1 and len(labels) > keep_top_k:
        chosen = descending(scores)[:keep_top_k]
        chosen = chosen[np.argsort(labels[chosen], kind="stable")]
        return labels[chosen], index[chosen]
    return labels, index
