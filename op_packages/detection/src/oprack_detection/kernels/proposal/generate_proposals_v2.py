"""Kernels of generate_proposals_v2."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.types import FLOATS

from oprack_detection.kernels.proposal._generate_proposals import proposals


@kernel("generate_proposals_v2", dtypes=FLOATS)
def generate_proposals_v2(
    Scores: Array,
    BboxDeltas: Array,
    ImShape: Array,
    Anchors: Array,
    Variances: Array,
    *,
    pre_nms_topN: int,
    post_nms_topN: int,
    nms_thresh: float,
    min_size: float,
    eta: float,
    pixel_offset: bool,
) -> tuple[Array, ...]:
    options = {"pre": pre_nms_topN, "post": post_nms_topN, "thresh": nms_thresh, "min_size": min_size, "eta": eta}
    scales = np.ones(len(Scores), Scores.dtype)
    return proposals(Scores, BboxDeltas, ImShape, scales, Anchors, Variances, 1 if pixel_offset else 0, options)
