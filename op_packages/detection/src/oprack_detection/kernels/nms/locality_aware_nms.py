"""Kernel of locality_aware_nms."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.nms._multiclass_nms import NmsOptions
from oprack_detection.kernels.nms._suppression import best, keep_best, pair_overlaps, suppress


def _merged(boxes: Array, scores: Array, threshold: float, pixel: int) -> tuple[Array, Array, Array]:
    """Boxes and scores after neighbours were merged, and the indices of those that are left.

    What a box is compared with depends on all merges before, so they are walked one by one.
    """
    boxes, scores = boxes.copy(), scores.copy()
    left, last = [], -1
    for i in range(len(boxes)):
        if last > -1 and pair_overlaps(boxes[i, None], boxes[last, None], pixel)[0] > threshold:
            total = scores[i] + scores[last]
            boxes[last] = (boxes[i] * scores[i] + boxes[last] * scores[last]) / total
            scores[last] = total
        else:
            left.append(i)
            last = i
    return boxes, scores, np.array(left, np.int64)


@kernel("locality_aware_nms", dtypes=FLOATS)
def locality_aware_nms(BBoxes: Array, Scores: Array, *, options: NmsOptions) -> LoDTensor:
    pixel = 0 if options.normalized else 1
    images, offsets = [], [0]
    for image_boxes, image_scores in zip(BBoxes, Scores, strict=True):
        rows = [np.empty((0, 2 + BBoxes.shape[2]), Scores.dtype)]
        for c in range(len(image_scores)):
            if c == options.background_label:
                continue
            boxes, scores, left = _merged(image_boxes, image_scores[c], options.nms_threshold, pixel)
            order = left[best(scores[left], options.score_threshold, options.nms_top_k)]
            kept = order[suppress(boxes[order], options.nms_threshold, options.nms_eta, pixel)]
            label = np.full((len(kept), 1), c, Scores.dtype)
            rows.append(np.concatenate([label, scores[kept, None], boxes[kept]], axis=1))
        table = np.concatenate(rows)
        _, index = keep_best(table[:, 0], np.arange(len(table)), table[:, 1], options.keep_top_k)
        images.append(table[index])
        offsets.append(offsets[-1] + len(index))
    if not offsets[-1]:
        return LoDTensor(np.full((1, 1), -1, Scores.dtype), [[0, 1]])
    return LoDTensor(np.concatenate(images), [offsets])
