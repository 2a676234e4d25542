"""Greedy non-maximum suppression, and the choice of detections of one image."""

from __future__ import annotations

import numpy as np

from oprack_vision.kernels._boxes import overlaps


def descending(scores):
    """Indices that sort scores from high to low; equal ones keep their order."""
    return np.argsort(-scores, kind="stable")


def suppress(boxes, threshold, eta, pixel):
    """Indices of the boxes [K, 4], best first, that overlap no better kept box by more than `threshold`.

    eta < 1 lowers the threshold after each kept box while it is above 0.5. The loop is over kept boxes.
    """
    kept, at = [], 0
    worst = np.zeros(len(boxes), boxes.dtype)
    while at < len(boxes):
        kept.append(at)
        if eta < 1 and threshold > 0.5:
            threshold *= eta
        rest = slice(at + 1, None)
        np.maximum(worst[rest], overlaps(boxes[at], boxes[rest], pixel, np), out=worst[rest])
        free = worst[rest] <= threshold
        step = int(free.argmax()) if free.any() else len(boxes)
        at += 1 + step
    return np.array(kept, dtype=np.int64)


def best(scores, threshold, top_k):
    """Indices of the scores above a threshold, best first, at most top_k of them (-1: all)."""
    above = np.flatnonzero(scores > threshold)
    order = above[descending(scores[above])]
    return order[:top_k] if top_k > -1 else order


def keep_best(labels, index, scores, keep_top_k):
    """(labels, index) of the keep_top_k best detections (-1: all), by class and from high to low score in each."""
    if keep_top_k > -1 and len(labels) > keep_top_k:
        chosen = descending(scores)[:keep_top_k]
        chosen = chosen[np.argsort(labels[chosen], kind="stable")]
        return labels[chosen], index[chosen]
    return labels, index
