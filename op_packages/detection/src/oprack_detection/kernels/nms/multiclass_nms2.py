"""Kernels of multiclass_nms2."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.nms._multiclass_nms import NmsOptions, detections


@kernel("multiclass_nms2", dtypes=FLOATS)
def multiclass_nms2(
    BBoxes: Array, Scores: Array, *, options: NmsOptions, ctx: KernelContext
) -> tuple[LoDTensor, LoDTensor]:
    out, index, counts = detections(BBoxes, Scores, None, ctx.lod("BBoxes"), options)
    lod = [[0, *np.cumsum(counts).tolist()]]
    return LoDTensor(out, lod), LoDTensor(index, [list(lod[0])])
