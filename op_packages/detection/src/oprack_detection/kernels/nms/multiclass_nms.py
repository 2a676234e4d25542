"""Kernels of multiclass_nms."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.nms._multiclass_nms import NmsOptions, detections


@kernel("multiclass_nms", dtypes=FLOATS)
def multiclass_nms(BBoxes: Array, Scores: Array, *, options: NmsOptions, ctx: KernelContext) -> LoDTensor:
    out, _, counts = detections(BBoxes, Scores, None, ctx.lod("BBoxes"), options)
    if not len(out):
        return LoDTensor(np.full((1, 1), -1, Scores.dtype), [[0, 1]])
    return LoDTensor(out, [[0, *np.cumsum(counts).tolist()]])
