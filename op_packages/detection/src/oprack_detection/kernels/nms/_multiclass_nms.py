"""Suppression per class and image, and the best of all classes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array

from oprack_detection.kernels.nms._suppression import best, keep_best, suppress, suppress_each


class NmsOptions(NamedTuple):
    """What kernels of multiclass_nms and its versions take as one parameter: the attributes of these names."""

    background_label: int
    score_threshold: float
    nms_top_k: int
    nms_threshold: float
    nms_eta: float
    keep_top_k: int
    normalized: bool


def _detect(boxes: Array, scores: Array, options: NmsOptions) -> tuple[Array, Array]:
    """(labels, box index) of one image. boxes: [M, 4] (or polygons) for all classes or [M, C, 4]; scores: [C, M]."""
    classes = [c for c in range(len(scores)) if c != options.background_label]
    orders = [best(scores[c], options.score_threshold, options.nms_top_k) for c in classes]
    if not classes:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    wider = 0 if options.normalized else 1
    limits = options.nms_threshold, options.nms_eta, wider
    if boxes.ndim == 2:
        found = suppress_each(boxes, orders, *limits)
    else:
        found = [np.sort(o[suppress(boxes[o, c], *limits)]) for c, o in zip(classes, orders, strict=True)]
    labels = [np.full(len(index), c) for c, index in zip(classes, found, strict=True)]
    label, index = np.concatenate(labels), np.concatenate(found)
    label, index = keep_best(label, index, scores[label, index], options.keep_top_k)
    if boxes.ndim == 3:
        order = np.lexsort((index, label))
        label, index = label[order], index[order]
    return label, index


def _images(
    boxes: Array, scores: Array, rois_num: Array | None, lod: Sequence[Sequence[int]]
) -> list[tuple[Array, Array, int, int]]:
    """(boxes, scores [C, M], offset of the index, stride of the index) of each image."""
    if scores.ndim == 3:
        return [(boxes[i], scores[i], i * scores.shape[2], 1) for i in range(len(scores))]
    if rois_num is not None:
        offsets = [0, *np.cumsum(rois_num).tolist()]
    elif lod:
        offsets = lod[-1]
    else:
        raise InvalidArgumentError(
            f"op multiclass_nms: Scores has shape {list(scores.shape)}, the form for boxes of many images in one list, "
            "but neither LoD nor RoisNum tells the images apart; feed BBoxes with LoD or give RoisNum"
        )
    classes = scores.shape[1]
    return [(boxes[a:b], scores[a:b].T, a * classes, classes) for a, b in pairwise(offsets)]


def detections(
    boxes: Array, scores: Array, rois_num: Array | None, lod: Sequence[Sequence[int]], options: NmsOptions
) -> tuple[Array, ...]:
    """Rows [K, 2 + numbers of a box], index [K, 1] and detections per image."""
    rows, places, counts = [], [], []
    for image_boxes, image_scores, offset, stride in _images(boxes, scores, rois_num, lod):
        label, index = _detect(image_boxes, image_scores, options)
        row = np.empty((len(label), 2 + boxes.shape[-1]), scores.dtype)
        row[:, 0] = label
        row[:, 1] = image_scores[label, index]
        row[:, 2:] = image_boxes[index] if image_boxes.ndim == 2 else image_boxes[index, label]
        rows.append(row)
        places.append(offset + index * stride + (label if stride > 1 else 0))
        counts.append(len(label))
    out = np.concatenate(rows) if rows else np.empty((0, 2 + boxes.shape[-1]), scores.dtype)
    place = np.concatenate(places) if places else np.empty(0, np.int64)
    return out, place.astype(np.int32).reshape(-1, 1), np.array(counts, np.int32)
