"""What rpn_target_assign and retinanet_target_assign share: the targets of all images."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext
from oprack.tensor import LoDTensor

from oprack_detection.kernels.match._sampling import Sample, closest, codes, images_of, joined, learners


def _inside(anchors: Array, info: Array, straddle: float) -> Array:
    """Indices of the anchors that lie at most `straddle` pixels outside of an image."""
    if straddle < 0:
        return np.arange(len(anchors))
    height, width = info[0], info[1]
    low = (anchors[:, :2] >= -straddle).all(axis=1)
    return np.flatnonzero(low & (anchors[:, 2] < width + straddle) & (anchors[:, 3] < height + straddle))


def anchor_targets(
    anchors: Array,
    gt_boxes: Array,
    labels: Array | None,
    crowd: Array,
    info: Array,
    overlap: tuple[float, float],
    sampling: tuple[int, float, Sample],
    straddle: float,
    ctx: KernelContext,
) -> tuple[LoDTensor, ...]:
    """LocationIndex, ScoreIndex, TargetBBox, TargetLabel, BBoxInsideWeight and ForegroundNumber."""
    found = []
    boxes_of, crowd_of = images_of(ctx.op_type, ctx, ("GtBoxes", "IsCrowd"), len(info))
    for i, ((a, b), (c, d)) in enumerate(zip(boxes_of, crowd_of, strict=True)):
        index = _inside(anchors, info[i], straddle)
        single = crowd[c:d].reshape(-1) == 0
        gt = gt_boxes[a:b][single] * info[i, 2]
        near, most, which = closest(anchors[index], gt)
        location, counts, positive, negative = learners(near, most, *overlap, *sampling)
        if labels is None:
            positive_labels = np.ones(len(positive), np.int64)
        else:
            positive_labels = labels[a:b].reshape(-1)[single][which[positive]]
        offset = i * len(anchors)
        found.append(
            (
                (index[location] + offset).astype(np.int32),
                (index[np.concatenate([positive, negative])] + offset).astype(np.int32),
                codes(anchors[index[location]], gt[which[location]]).astype(gt_boxes.dtype),
                np.concatenate([positive_labels, np.zeros(len(negative))]).astype(np.int32)[:, None],
                np.repeat(counts[:, None], 4, axis=1).astype(gt_boxes.dtype),
                np.array([[len(location) + 1]], np.int32),
            )
        )
    return tuple(joined(parts) for parts in zip(*found, strict=True))
