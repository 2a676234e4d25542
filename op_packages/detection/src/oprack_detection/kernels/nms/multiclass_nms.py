"""Kernels of multiclass_nms."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.nms._multiclass_nms import detections, nms_options


@kernel("multiclass_nms", dtypes=FLOATS)
def multiclass_nms(
    BBoxes,
    Scores,
    *,
    background_label,
    score_threshold,
    nms_top_k,
    nms_threshold,
    nms_eta,
    keep_top_k,
    normalized,
    ctx,
):
    options = nms_options(background_label, score_threshold, nms_top_k, nms_threshold, nms_eta, keep_top_k, normalized)
    out, _, counts = detections(BBoxes, Scores, None, ctx.lod("BBoxes"), **options)
    if not len(out):
        return LoDTensor(np.full((1, 1), -1, Scores.dtype), [[0, 1]])
    return LoDTensor(out, [[0, *np.cumsum(counts).tolist()]])
