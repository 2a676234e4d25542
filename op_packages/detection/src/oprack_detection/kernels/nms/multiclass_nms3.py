"""Kernels of multiclass_nms3."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_detection.kernels.nms._multiclass_nms import NmsOptions, detections


@kernel("multiclass_nms3", dtypes=FLOATS)
def multiclass_nms3(BBoxes, Scores, RoisNum=None, *, options: NmsOptions, ctx):
    return detections(BBoxes, Scores, RoisNum, ctx.lod("BBoxes"), options)
