"""Kernels of multiclass_nms2."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.nms._multiclass_nms import detections, nms_options


@kernel("multiclass_nms2", dtypes=FLOATS)
def multiclass_nms2(
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
    out, index, counts = detections(BBoxes, Scores, None, ctx.lod("BBoxes"), **options)
    lod = [[0, *np.cumsum(counts).tolist()]]
    return LoDTensor(out, lod), LoDTensor(index, [list(lod[0])])
