"""Kernels of multiclass_nms3."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_detection.kernels.nms._multiclass_nms import detections, nms_options


@kernel("multiclass_nms3", dtypes=FLOATS)
def multiclass_nms3(
    BBoxes,
    Scores,
    RoisNum=None,
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
    return detections(BBoxes, Scores, RoisNum, ctx.lod("BBoxes"), **options)
