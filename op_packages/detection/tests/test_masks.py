"""Masks of polygons: a pixel is filled where its middle lies within, as far from an edge as rounding can tell."""

from __future__ import annotations

import numpy as np
import pytest
from oprack import LoDTensor
from oprack import functional as F
from oprack.errors import InvalidArgumentError

SIZE = 14


def distance_and_side(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For the middle of each pixel, how near it is to an edge, and whether an odd number of edges lies above it."""
    y, x = np.meshgrid(np.arange(SIZE) + 0.5, np.arange(SIZE) + 0.5, indexing="ij")
    near, odd = np.full((SIZE, SIZE), np.inf), np.zeros((SIZE, SIZE), bool)
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = np.clip(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2), 0, 1)
        near = np.minimum(near, np.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay)))
        with np.errstate(divide="ignore", invalid="ignore"):
            odd ^= ((ax > x) != (bx > x)) & (y > ay + (x - ax) * (by - ay) / (bx - ax))
    return near, odd


def mask_of(corners: np.ndarray, roi: list[float], polygons: list[int] | None = None) -> np.ndarray:
    levels = [[0, 1], [0, len(polygons) - 1 if polygons else 1], polygons or [0, len(corners)]]
    found = F.generate_mask_labels(
        np.array([[100, 100, 1]], np.float32),
        LoDTensor(np.ones((1, 1), np.int32), [[0, 1]]),
        LoDTensor(np.zeros((1, 1), np.int32), [[0, 1]]),
        LoDTensor(corners.astype(np.float32), levels),
        LoDTensor(np.array([roi], np.float32), [[0, 1]]),
        LoDTensor(np.ones((1, 1), np.int32), [[0, 1]]),
        num_classes=2,
        resolution=SIZE,
    )
    mask = np.asarray(found.mask_int32).reshape(2, SIZE, SIZE)
    assert (mask[0] == -1).all()
    return mask[1]


@pytest.mark.parametrize("seed", range(6))
def test_pixels_whose_middle_lies_within_are_filled(seed: int) -> None:
    """Polygons with up to eight corners, also crossing themselves and far beyond the region."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-30 * (seed % 2), SIZE + 30 * (seed % 3), (3 + seed, 2))
    near, odd = distance_and_side(corners)
    mask = mask_of(corners * 2 + 5, [5, 5, 5 + 2 * SIZE, 5 + 2 * SIZE])
    sure = near > 0.3
    assert sure.mean() > 0.3
    np.testing.assert_array_equal(mask[sure], odd[sure])


def test_what_two_polygons_share_is_filled() -> None:
    boxes = np.array([[[0, 0], [8, 0], [8, 8], [0, 8]], [[4, 4], [12, 4], [12, 12], [4, 12]]], np.float32)
    mask = mask_of(boxes.reshape(-1, 2), [0, 0, SIZE, SIZE], [0, 4, 8])
    want = np.zeros((SIZE, SIZE), int)
    want[:8, :8] = want[4:12, 4:12] = 1
    np.testing.assert_array_equal(mask, want)


def test_corners_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="GtSegms holds infinities or NaN"):
        mask_of(np.array([[0, 0], [np.nan, 0], [3, 3]]), [0, 0, 8, 8])


def test_a_mask_of_paddle() -> None:
    """What Paddle 2.6.2 answers for an outline that crosses itself and begins beyond the region."""
    corners = [
        [13.52988338470459, 7.169078826904297], [13.413779258728027, 17.929920196533203],
        [33.700748443603516, 16.69912338256836], [28.69953155517578, 22.689199447631836],
    ]  # fmt: skip
    roi = [15.322733879089355, 1.3662956953048706, 29.443262100219727, 22.150617599487305]
    filled = {6: "11", 7: "111", 8: "11111", 9: "111111", 10: "11111111", 11: "00000000011111"}
    filled |= {12: "00000000000111", 13: "00000000000011"}
    want = [[int(c) for c in filled.get(y, "").ljust(SIZE, "0")] for y in range(SIZE)]
    np.testing.assert_array_equal(mask_of(np.array(corners), roi), want)
