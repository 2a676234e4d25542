"""Kernel of matrix_nms."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.types import FLOATS

from oprack_detection.kernels._boxes import overlaps
from oprack_detection.kernels.nms import best, descending


def _decay(boxes: Array, pixel: int, sigma: float | None) -> Array:
    """Factor of each score [K]; boxes are sorted by score. sigma: None for the linear decay."""
    iou = np.triu(overlaps(boxes[:, None], boxes[None], pixel, np), 1)  # [better, worse]
    held = iou.max(axis=0, initial=0)[:, None]  # how much each better box is suppressed itself
    if sigma is None:
        # a better box that is fully suppressed itself (held = 1) suppresses nothing
        decay = np.where(held < 1, (1 - iou) / np.where(held < 1, 1 - held, 1), 1)
    else:
        decay = np.exp((held * held - iou * iou) * sigma)
    better = np.triu(np.ones(iou.shape, bool), 1)
    return np.where(better, decay, 1).min(axis=0, initial=1).astype(boxes.dtype)


@kernel("matrix_nms", dtypes=FLOATS)
def matrix_nms(
    BBoxes: Array,
    Scores: Array,
    *,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    post_threshold: float,
    use_gaussian: bool,
    gaussian_sigma: float,
    background_label: int,
    normalized: bool,
) -> tuple[Array, ...]:
    pixel, sigma = (0 if normalized else 1), (gaussian_sigma if use_gaussian else None)
    rows, places, counts = [np.empty((0, 6), Scores.dtype)], [np.empty(0, np.int64)], []
    for i, (boxes, scores) in enumerate(zip(BBoxes, Scores, strict=True)):
        label, index, score = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, Scores.dtype)]
        for c in range(len(scores)):
            if c == background_label:
                continue
            candidates = best(scores[c], score_threshold, nms_top_k)
            decayed = scores[c, candidates] * _decay(boxes[candidates], pixel, sigma)
            kept = decayed > post_threshold
            label.append(np.full(int(kept.sum()), c))
            index.append(candidates[kept])
            score.append(decayed[kept])
        labels, indices, values = np.concatenate(label), np.concatenate(index), np.concatenate(score)
        order = descending(values)
        order = order[:keep_top_k] if keep_top_k > -1 else order
        rows.append(np.concatenate([np.stack([labels, values], axis=1)[order], boxes[indices[order]]], axis=1))
        places.append(i * BBoxes.shape[1] + indices[order])
        counts.append(len(order))
    place = np.concatenate(places).astype(np.int32).reshape(-1, 1)
    return np.concatenate(rows).astype(Scores.dtype), place, np.array(counts, np.int32)
