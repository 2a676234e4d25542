"""Proposals of one image and of all: the best boxes, decoded, clipped, and suppressed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from oprack.kernel import Array

from oprack_detection.kernels.nms._suppression import descending, suppress

_LARGEST = math.log(1000.0 / 16.0)  # codes of sizes are held below, so that exp does not overflow


def _decode(anchors: Array, codes: Array, variances: Array, pixel: int) -> Array:
    """Boxes [K, 4] of codes relative to anchors; pixel: 1 for inclusive corners, else 0."""
    kind = anchors.dtype.type
    size = anchors[:, 2:] - anchors[:, :2] + kind(pixel)
    center = anchors[:, :2] + kind(0.5) * size
    codes = codes * variances
    middle = codes[:, :2] * size + center
    half = np.exp(np.minimum(codes[:, 2:], kind(_LARGEST))) * size * kind(0.5)
    return np.concatenate([middle - half, middle + half - kind(pixel)], axis=1)


def _large_enough(
    boxes: Array, height: float, width: float, scale: float, min_size: float, pixel: int, inside: int
) -> Array:
    """Boxes of at least min_size; with `inside` their centres have to lie in the image."""
    size = boxes[:, 2:] - boxes[:, :2] + pixel
    original = (boxes[:, 2:] - boxes[:, :2]) / scale + pixel
    kept = (original >= min_size).all(axis=1)
    if inside:
        kept &= (boxes[:, :2] + size / 2 <= np.array([width, height], boxes.dtype)).all(axis=1)
    return kept


def _propose(
    scores: Array,
    codes: Array,
    anchors: Array,
    variances: Array,
    image: Array,
    scale: float,
    pixel: int,
    options: Mapping[str, float],
) -> tuple[Array, Array]:
    """(boxes, scores) of one image."""
    order = descending(scores)
    if 0 < options["pre"] < len(order):
        order = order[: options["pre"]]
    height, width = (float(v) for v in image)
    boxes = _decode(anchors[order], codes[order], variances[order], pixel)
    limit = np.array([width, height, width, height], boxes.dtype) - boxes.dtype.type(pixel)
    boxes = np.clip(boxes, 0, limit)
    kept = _large_enough(boxes, height, width, scale, max(options["min_size"], 1.0), pixel, pixel)
    boxes, scores = boxes[kept], scores[order][kept]
    if not len(boxes):
        return np.zeros((1, 4), boxes.dtype), np.zeros(1, scores.dtype)
    chosen = suppress(boxes, options["thresh"], options["eta"], pixel) if options["thresh"] > 0 else slice(None)
    boxes, scores = boxes[chosen], scores[chosen]
    return (boxes[: options["post"]], scores[: options["post"]]) if options["post"] > 0 else (boxes, scores)


def proposals(
    scores: Array,
    deltas: Array,
    images: Array,
    scales: Array,
    anchors: Array,
    variances: Array,
    pixel: int,
    options: Mapping[str, float],
) -> tuple[Array, ...]:
    """All proposals [R, 4], their scores [R, 1] and the count of each image."""
    anchors, variances = anchors.reshape(-1, 4), variances.reshape(-1, 4)
    found = [
        _propose(
            s.transpose(1, 2, 0).reshape(-1),
            d.transpose(1, 2, 0).reshape(-1, 4),
            anchors,
            variances,
            image,
            scale,
            pixel,
            options,
        )
        for s, d, image, scale in zip(scores, deltas, images, scales, strict=True)
    ]
    counts = np.array([len(b) for b, _ in found], np.int32)
    rois = np.concatenate([np.empty((0, 4), scores.dtype), *(b for b, _ in found)])
    probs = np.concatenate([np.empty(0, scores.dtype), *(p for _, p in found)])
    return rois, probs.reshape(-1, 1), counts
