"""Kernel of iou_similarity."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


def _sides(boxes: Array, pixel: float) -> Array:
    return boxes[..., 2:] - boxes[..., :2] + pixel


@kernel("iou_similarity", place=("cpu", "cuda"), dtypes=FLOATS)
def iou_similarity(X: Array, Y: Array, *, box_normalized: bool, xp: ArrayModule) -> Array:
    a, b, pixel = X[:, None], Y[None], X.dtype.type(0 if box_normalized else 1)
    low, high = xp.maximum(a[..., :2], b[..., :2]), xp.minimum(a[..., 2:], b[..., 2:])
    # in pixels, boxes whose borders are next to each other share some: the offset comes before the comparison with 0
    inside = xp.maximum(high - low + pixel, pixel * 0).prod(axis=-1)
    union = _sides(a, pixel).prod(axis=-1) + _sides(b, pixel).prod(axis=-1) - inside
    return xp.where(inside > 0, inside / xp.where(inside > 0, union, 1), inside)
