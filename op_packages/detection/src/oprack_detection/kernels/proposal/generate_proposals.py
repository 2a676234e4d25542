"""Kernels of generate_proposals."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.proposal._generate_proposals import proposals


@kernel("generate_proposals", dtypes=FLOATS)
def generate_proposals(
    Scores: Array,
    BboxDeltas: Array,
    ImInfo: Array,
    Anchors: Array,
    Variances: Array,
    *,
    pre_nms_topN: int,
    post_nms_topN: int,
    nms_thresh: float,
    min_size: float,
    eta: float,
) -> tuple[LoDTensor, LoDTensor, Array]:
    options = {"pre": pre_nms_topN, "post": post_nms_topN, "thresh": nms_thresh, "min_size": min_size, "eta": eta}
    rois, probs, counts = proposals(Scores, BboxDeltas, ImInfo[:, :2], ImInfo[:, 2], Anchors, Variances, 1, options)
    offsets = [0, *np.cumsum(counts).tolist()]
    return LoDTensor(rois, [offsets]), LoDTensor(probs, [list(offsets)]), counts
