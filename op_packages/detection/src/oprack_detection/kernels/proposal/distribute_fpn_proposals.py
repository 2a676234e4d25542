"""Kernel of distribute_fpn_proposals."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels._boxes import areas
from oprack_detection.kernels._regions import image_of_region


@kernel("distribute_fpn_proposals", dtypes=FLOATS)
def distribute_fpn_proposals(
    FpnRois: Array,
    RoisNum: Array | None = None,
    *,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    pixel_offset: bool,
    ctx: KernelContext,
) -> tuple[list[LoDTensor], Array, list[Array]]:
    lod = ctx.lod("FpnRois")
    images = len(RoisNum) if RoisNum is not None else len(lod[-1]) - 1 if lod else 1
    image = image_of_region(FpnRois, RoisNum, lod, images, "distribute_fpn_proposals")
    scale = np.sqrt(areas(FpnRois, 1 if pixel_offset else 0, np))
    level = np.floor(np.log2(scale / FpnRois.dtype.type(refer_scale) + 1e-6) + refer_level)
    level = np.clip(level, min_level, max_level).astype(np.int64) - min_level
    order = np.argsort(level, kind="stable")  # by level, in each by image
    restore = np.empty(len(order), np.int32)
    restore[order] = np.arange(len(order))
    rois, counts = [], []
    for k in range(max_level - min_level + 1):
        members = level == k
        count = np.bincount(image[members], minlength=images)
        rois.append(LoDTensor(FpnRois[members], [[0, *np.cumsum(count).tolist()]]))
        counts.append(count.astype(np.int32))
    return rois, restore.reshape(-1, 1), counts
