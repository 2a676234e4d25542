"""Overlaps of polygons, by areas that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from oprack_detection.kernels._boxes import overlaps
from oprack_detection.kernels.nms import polygon_areas, polygon_overlaps

SQUARE = [0, 0, 2, 0, 2, 2, 0, 2]


@pytest.mark.parametrize(
    ("a", "b", "shared", "together"),
    [
        (SQUARE, SQUARE, 4, 4),
        (SQUARE, [1, 0, 3, 0, 3, 2, 1, 2], 2, 6),
        (SQUARE, [1, 0, 2, 1, 1, 2, 0, 1], 2, 4),  # a square on its corner, inside
        (SQUARE, [2, 0, 4, 0, 4, 2, 2, 2], 0, 8),  # a side in common
        (SQUARE, [0.5, 0.5, 1.5, 0.5, 1.5, 1.5, 0.5, 1.5], 1, 4),
        (SQUARE, [5, 5, 6, 5, 6, 6, 5, 6], 0, 5),
        (SQUARE, [0, 0, 2, 2, 2, 0, 0, 2], 0, 4),  # sides that cross: its two halves have opposite signs
        # a V of two legs against a band across them: each leg is x = 2y/3 .. y/2 wide up to y = 1
        ([0, 0, 2, 3, 4, 0, 2, 4], [-1, 0, 5, 0, 5, 1, -1, 1], 2 * (2 / 3 - 1 / 2) / 2, 2 + 6 - 1 / 6),
    ],
)
@pytest.mark.parametrize("shift", [0, 1000])
def test_overlaps(a, b, shared, together, shift):
    a, b = np.array(a, np.float64) + shift, np.array(b, np.float64) + shift
    turned = [np.roll(a.reshape(-1, 2), 1, 0).reshape(-1), a.reshape(-1, 2)[::-1].reshape(-1)]
    for p in (a, *turned):
        assert polygon_overlaps(p, b) == pytest.approx(shared / together, abs=1e-12)
        assert polygon_overlaps(b, p) == pytest.approx(shared / together, abs=1e-12)


def test_polygons_of_many_corners_near_a_circle():
    turns = np.arange(16) * 2 * np.pi / 16
    circle = np.stack([np.cos(turns), np.sin(turns)], -1).reshape(-1)
    area = 16 / 2 * np.sin(2 * np.pi / 16)
    assert polygon_areas(circle) == pytest.approx(area)
    assert polygon_overlaps(circle, 2 * circle) == pytest.approx(1 / 4)
    half = np.tile([-1.0, 0, 1, 0, 1, 2, -1, 2], 4)[
        :32
    ]  # the same square four times over: nothing by the even-odd rule
    assert polygon_overlaps(circle, half) == 0


def test_upright_rectangles_overlap_as_boxes_do():
    rng = np.random.default_rng(0)
    low, size = rng.uniform(0, 10, (40, 2)), rng.uniform(0.1, 6, (40, 2))
    boxes = np.concatenate([low, low + size], -1).astype(np.float32)
    polygons = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]]
    want = overlaps(boxes[:, None].astype(np.float64), boxes[None].astype(np.float64), 0, np)
    got = polygon_overlaps(polygons[:, None], polygons[None])
    np.testing.assert_allclose(got, want, atol=1e-6)
    above = polygon_overlaps(polygons[:, None], polygons[None], 0.3)
    assert ((above > 0.3) == (got > 0.3)).all()
    assert ((above == got) | (above == 0)).all()
