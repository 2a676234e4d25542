"""Kernel of iou_similarity."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_vision.kernels._boxes import overlaps


@kernel("iou_similarity", place=("cpu", "cuda"), dtypes=FLOATS)
def iou_similarity(X, Y, *, box_normalized, xp):
    return overlaps(X[:, None], Y[None], 0 if box_normalized else 1, xp)
