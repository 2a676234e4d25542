"""Kernels of multiclass_nms3."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS

from oprack_detection.kernels.nms._multiclass_nms import NmsOptions, detections


@kernel("multiclass_nms3", dtypes=FLOATS)
def multiclass_nms3(
    BBoxes: Array, Scores: Array, RoisNum: Array | None = None, *, options: NmsOptions, ctx: KernelContext
) -> tuple[Array, ...]:
    return detections(BBoxes, Scores, RoisNum, ctx.lod("BBoxes"), options)
