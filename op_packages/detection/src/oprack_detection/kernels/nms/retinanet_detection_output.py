"""Kernel of retinanet_detection_output."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.nms._suppression import best, descending, suppress


def _decode(anchors: Array, codes: Array, info: Array) -> Array:
    """Boxes [K, 4] in pixels of the image before it was scaled."""
    kind = codes.dtype.type
    size = anchors[:, 2:] - anchors[:, :2] + kind(1)
    middle = codes[:, :2] * size + anchors[:, :2] + size / kind(2)
    half = np.exp(codes[:, 2:]) * size / kind(2)
    boxes = np.concatenate([middle - half, middle + half - kind(1)], axis=1) / info[2]
    height, width = np.floor(info[:2] / info[2] + kind(0.5)) - kind(1)
    return np.clip(boxes, kind(0), np.array([width, height, width, height], codes.dtype))


@kernel("retinanet_detection_output", dtypes=FLOATS)
def retinanet_detection_output(
    BBoxes: list[Array],
    Scores: list[Array],
    Anchors: list[Array],
    ImInfo: Array,
    *,
    score_threshold: float,
    nms_top_k: int,
    nms_threshold: float,
    nms_eta: float,
    keep_top_k: int,
) -> LoDTensor:
    rows = []
    for i, info in enumerate(ImInfo):
        boxes, scores, labels = [], [], []
        for level, (codes, of_level, anchors) in enumerate(zip(BBoxes, Scores, Anchors, strict=True)):
            threshold = score_threshold if level + 1 < len(Scores) else 0.0
            flat = of_level[i].reshape(-1)
            found = best(flat, threshold, nms_top_k)
            anchor, label = np.divmod(found, max(of_level.shape[2], 1))
            boxes.append(_decode(anchors[anchor], codes[i, anchor], info))
            scores.append(flat[found])
            labels.append(label)
        box, score, label = np.concatenate(boxes), np.concatenate(scores), np.concatenate(labels)
        kept = []
        for c in np.unique(label):
            order = np.flatnonzero(label == c)
            order = order[descending(score[order])]
            kept.append(order[suppress(box[order], nms_threshold, nms_eta, 1)])
        index = np.concatenate([np.empty(0, np.int64), *kept])
        index = index[descending(score[index])]
        index = index[:keep_top_k] if keep_top_k > -1 else index
        rows.append(np.concatenate([label[index, None] + 1, score[index, None], box[index]], axis=1))
    offsets = np.cumsum([0, *(len(r) for r in rows)]).tolist()
    table = np.concatenate([np.empty((0, 6)), *rows])
    return LoDTensor(table.astype(ImInfo.dtype), [offsets])
