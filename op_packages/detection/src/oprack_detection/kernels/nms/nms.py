"""Kernel of nms."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.types import FLOATS

from oprack_detection.kernels.nms._suppression import suppress


@kernel("nms", dtypes=FLOATS)
def nms(Boxes: Array, *, iou_threshold: float) -> Array:
    return suppress(Boxes, iou_threshold, 1.0, 0).astype(np.int64)
