"""Kernels of generate_proposals_v2."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_detection.kernels.proposal._generate_proposals import proposals


@kernel("generate_proposals_v2", dtypes=FLOATS)
def generate_proposals_v2(
    Scores,
    BboxDeltas,
    ImShape,
    Anchors,
    Variances,
    *,
    pre_nms_topN,
    post_nms_topN,
    nms_thresh,
    min_size,
    eta,
    pixel_offset,
):
    options = {"pre": pre_nms_topN, "post": post_nms_topN, "thresh": nms_thresh, "min_size": min_size, "eta": eta}
    scales = np.ones(len(Scores), Scores.dtype)
    return proposals(Scores, BboxDeltas, ImShape, scales, Anchors, Variances, 1 if pixel_offset else 0, options)
