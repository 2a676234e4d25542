"""Kernels of YOLO."""

from __future__ import annotations

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


def _sigmoid(x: Array, xp: ArrayModule) -> Array:
    with np.errstate(over="ignore"):
        return x.dtype.type(1) / (x.dtype.type(1) + xp.exp(-x))


@kernel("yolo_box", place=("cpu", "cuda"), dtypes=FLOATS)
def yolo_box(
    X: Array,
    ImgSize: Array,
    *,
    anchors: list[int],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool,
    scale_x_y: float,
    iou_aware: bool,
    iou_aware_factor: float,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    kind = X.dtype.type
    n, _, h, w = X.shape
    count = len(anchors) // 2
    head = X[:, count if iou_aware else 0 :].reshape(n, count, 5 + class_num, h, w)
    confidence = _sigmoid(head[:, :, 4], xp)
    if iou_aware:
        overlap = _sigmoid(X[:, :count], xp)
        confidence = confidence ** kind(1 - iou_aware_factor) * overlap ** kind(iou_aware_factor)
    kept = confidence >= conf_thresh

    image = ImgSize.astype(X.dtype).reshape(n, 2, 1, 1, 1)
    image_h, image_w = image[:, 0], image[:, 1]
    bias = kind(-0.5 * (scale_x_y - 1))
    column = xp.arange(w, dtype=X.dtype)
    row = xp.arange(h, dtype=X.dtype)[:, None]
    x = (column + _sigmoid(head[:, :, 0], xp) * kind(scale_x_y) + bias) * image_w / kind(w)
    y = (row + _sigmoid(head[:, :, 1], xp) * kind(scale_x_y) + bias) * image_h / kind(h)
    sizes = constant(np.array(anchors, X.dtype), xp).reshape(1, count, 2, 1, 1)
    half_w = xp.exp(head[:, :, 2]) * sizes[:, :, 0] * image_w / kind(downsample_ratio * w) / kind(2)
    half_h = xp.exp(head[:, :, 3]) * sizes[:, :, 1] * image_h / kind(downsample_ratio * h) / kind(2)
    low_x, low_y, high_x, high_y = x - half_w, y - half_h, x + half_w, y + half_h
    if clip_bbox:
        low_x, low_y = xp.maximum(low_x, kind(0)), xp.maximum(low_y, kind(0))
        high_x, high_y = xp.minimum(high_x, image_w - kind(1)), xp.minimum(high_y, image_h - kind(1))
    boxes = xp.where(kept[..., None], xp.stack([low_x, low_y, high_x, high_y], axis=-1), kind(0))
    scores = _sigmoid(head[:, :, 5:], xp) * (confidence * kept)[:, :, None]
    return boxes.reshape(n, count * h * w, 4), scores.transpose(0, 1, 3, 4, 2).reshape(n, count * h * w, class_num)
