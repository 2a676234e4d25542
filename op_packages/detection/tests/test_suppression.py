"""Suppression of many boxes at once keeps what a loop over pairs of boxes keeps."""

from __future__ import annotations

import numpy as np
import pytest
from oprack_detection.kernels.nms import best, suppress, suppress_each


def overlap(a, b, pixel):
    width = min(a[2], b[2]) - max(a[0], b[0]) + pixel
    height = min(a[3], b[3]) - max(a[1], b[1]) + pixel
    inside = width * height if width > 0 and height > 0 else 0.0
    return inside / (
        (a[2] - a[0] + pixel) * (a[3] - a[1] + pixel) + (b[2] - b[0] + pixel) * (b[3] - b[1] + pixel) - inside
    )


def kept_by_loop(boxes, order, threshold, pixel):
    kept = []
    for i in order:
        if all(overlap(boxes[i], boxes[j], pixel) <= threshold for j in kept):
            kept.append(i)
    return kept


def some_boxes(count, seed=0):
    """On a grid of eighths, so that float32 has them exactly."""
    random = np.random.default_rng(seed)
    corner, size = random.integers(0, 200, (count, 2)), random.integers(8, 60, (count, 2))
    return (np.concatenate([corner, corner + size], axis=1) / 8).astype(np.float32)


@pytest.mark.parametrize("pixel", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 127, 128, 129, 300])
def test_suppress(count, pixel):
    boxes = some_boxes(count)
    assert suppress(boxes, 0.4503, 1.0, pixel).tolist() == kept_by_loop(
        boxes.astype(float), range(count), 0.4503, pixel
    )


@pytest.mark.parametrize("wrong", [[1, 1, 1, 1], [3, 3, 1, 1], [np.nan] * 4, [0, 0, 0, 9]])
def test_boxes_without_an_area_exclude_none(wrong):
    boxes = some_boxes(40)
    boxes[[3, 20]] = wrong
    order = np.delete(np.arange(40), [3, 20])
    kept = kept_by_loop(boxes.astype(float), order, 0.4503, 0)
    with np.errstate(invalid="ignore"):
        assert suppress(boxes, 0.4503, 1.0, 0).tolist() == sorted([*kept, 3, 20])


# With many candidates in common boxes are compared once for all rows, with few row by row.
@pytest.mark.parametrize("share", [0, 5, 70, 200])
def test_suppress_each(share):
    boxes, random = some_boxes(200, seed=1), np.random.default_rng(share)
    orders = [random.permutation(200)[:share] for _ in range(4)] + [np.arange(3), np.arange(0)]
    found = suppress_each(boxes, orders, 0.4503, 1.0, 0)
    assert [f.tolist() for f in found] == [kept_by_loop(boxes.astype(float), o, 0.4503, 0) for o in orders]


@pytest.mark.parametrize("top_k", [-1, 0, 1, 7, 60, 500])
@pytest.mark.parametrize("distinct", [2, 9, 400])
def test_best_keeps_the_order_of_equal_scores(top_k, distinct):
    scores = (np.random.default_rng(2).integers(0, distinct, 400) / distinct).astype(np.float32)
    scores[17] = np.nan
    wanted = [
        i for i in sorted(range(400), key=lambda i: -scores[i] if scores[i] == scores[i] else 0) if scores[i] > 0.3
    ]
    assert best(scores, 0.3, top_k).tolist() == (wanted if top_k < 0 else wanted[:top_k])
