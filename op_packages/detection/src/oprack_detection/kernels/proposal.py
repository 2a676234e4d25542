"""Kernels of proposals of regions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels._boxes import areas
from oprack_detection.kernels._regions import image_of_region
from oprack_detection.kernels.nms import descending, suppress

# generate proposals ---------------------------------------------------------------------------------------------------
# Proposals of one image and of all: the best boxes, decoded, clipped, and suppressed.
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
    kept: Any = (original >= min_size).all(axis=1)
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


# collect_fpn_proposals ------------------------------------------------------------------------------------------------
@kernel("collect_fpn_proposals", dtypes=FLOATS)
def collect_fpn_proposals(
    MultiLevelRois: list[Array],
    MultiLevelScores: list[Array],
    MultiLevelRoIsNum: list[Array],
    *,
    post_nms_topN: int,
    ctx: KernelContext,
) -> tuple[LoDTensor, Array]:
    images = []
    for i, rois in enumerate(MultiLevelRois):
        count = MultiLevelRoIsNum[i] if MultiLevelRoIsNum else None
        lod = ctx.lod("MultiLevelRois", i)
        total = len(count) if count is not None else len(lod[-1]) - 1 if lod else 1
        images.append((image_of_region(rois, count, lod, total, "collect_fpn_proposals"), total))
    image = np.concatenate([i for i, _ in images])
    chosen = descending(np.concatenate([s.reshape(-1) for s in MultiLevelScores]))[:post_nms_topN]
    chosen = chosen[np.argsort(image[chosen], kind="stable")]
    counts = np.bincount(image[chosen], minlength=max(n for _, n in images))
    best = LoDTensor(np.concatenate(MultiLevelRois)[chosen], [[0, *np.cumsum(counts).tolist()]])
    return best, counts.astype(np.int32)


# distribute_fpn_proposals ---------------------------------------------------------------------------------------------
@kernel("distribute_fpn_proposals", dtypes=FLOATS)
def distribute_fpn_proposals(
    FpnRois: Array,
    RoisNum: Array | None = None,
    *,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    pixel_offset: bool,
    ctx: KernelContext,
) -> tuple[list[LoDTensor], Array, list[Array]]:
    lod = ctx.lod("FpnRois")
    images = len(RoisNum) if RoisNum is not None else len(lod[-1]) - 1 if lod else 1
    image = image_of_region(FpnRois, RoisNum, lod, images, "distribute_fpn_proposals")
    scale = np.sqrt(areas(FpnRois, 1 if pixel_offset else 0, np))
    level = np.floor(np.log2(scale / FpnRois.dtype.type(refer_scale) + 1e-6) + refer_level)
    level = np.clip(level, min_level, max_level).astype(np.int64) - min_level
    order = np.argsort(level, kind="stable")  # by level, in each by image
    restore = np.empty(len(order), np.int32)
    restore[order] = np.arange(len(order))
    rois, counts = [], []
    for k in range(max_level - min_level + 1):
        members = level == k
        count = np.bincount(image[members], minlength=images)
        rois.append(LoDTensor(FpnRois[members], [[0, *np.cumsum(count).tolist()]]))
        counts.append(count.astype(np.int32))
    return rois, restore.reshape(-1, 1), counts


# generate_proposals ---------------------------------------------------------------------------------------------------
@kernel("generate_proposals", dtypes=FLOATS)
def generate_proposals(
    Scores: Array,
    BboxDeltas: Array,
    ImInfo: Array,
    Anchors: Array,
    Variances: Array,
    *,
    pre_nms_topN: int,
    post_nms_topN: int,
    nms_thresh: float,
    min_size: float,
    eta: float,
) -> tuple[LoDTensor, LoDTensor, Array]:
    options = {"pre": pre_nms_topN, "post": post_nms_topN, "thresh": nms_thresh, "min_size": min_size, "eta": eta}
    rois, probs, counts = proposals(Scores, BboxDeltas, ImInfo[:, :2], ImInfo[:, 2], Anchors, Variances, 1, options)
    offsets = [0, *np.cumsum(counts).tolist()]
    return LoDTensor(rois, [offsets]), LoDTensor(probs, [list(offsets)]), counts


# generate_proposals_v2 ------------------------------------------------------------------------------------------------
@kernel("generate_proposals_v2", dtypes=FLOATS)
def generate_proposals_v2(
    Scores: Array,
    BboxDeltas: Array,
    ImShape: Array,
    Anchors: Array,
    Variances: Array,
    *,
    pre_nms_topN: int,
    post_nms_topN: int,
    nms_thresh: float,
    min_size: float,
    eta: float,
    pixel_offset: bool,
) -> tuple[Array, ...]:
    options = {"pre": pre_nms_topN, "post": post_nms_topN, "thresh": nms_thresh, "min_size": min_size, "eta": eta}
    scales = np.ones(len(Scores), Scores.dtype)
    return proposals(Scores, BboxDeltas, ImShape, scales, Anchors, Variances, 1 if pixel_offset else 0, options)
