"""Kernel of collect_fpn_proposals."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels._regions import image_of_region
from oprack_detection.kernels.nms._suppression import descending


@kernel("collect_fpn_proposals", dtypes=FLOATS)
def collect_fpn_proposals(
    MultiLevelRois: list[Array],
    MultiLevelScores: list[Array],
    MultiLevelRoIsNum: list[Array],
    *,
    post_nms_topN: int,
    ctx: KernelContext,
) -> tuple[LoDTensor, Array]:
    images = []
    for i, rois in enumerate(MultiLevelRois):
        count = MultiLevelRoIsNum[i] if MultiLevelRoIsNum else None
        lod = ctx.lod("MultiLevelRois", i)
        total = len(count) if count is not None else len(lod[-1]) - 1 if lod else 1
        images.append((image_of_region(rois, count, lod, total, "collect_fpn_proposals"), total))
    image = np.concatenate([i for i, _ in images])
    chosen = descending(np.concatenate([s.reshape(-1) for s in MultiLevelScores]))[:post_nms_topN]
    chosen = chosen[np.argsort(image[chosen], kind="stable")]
    counts = np.bincount(image[chosen], minlength=max(n for _, n in images))
    rois = LoDTensor(np.concatenate(MultiLevelRois)[chosen], [[0, *np.cumsum(counts).tolist()]])
    return rois, counts.astype(np.int32)
