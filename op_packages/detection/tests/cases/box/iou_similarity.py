"""Cases of iou_similarity by hand: a half, a quarter of three, apart, and boxes of pixels."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[0.0, 0, 2, 2]], np.float32)
Y = np.array([[0.0, 0, 2, 1], [1, 1, 3, 3], [4, 4, 5, 5]], np.float32)
CASES = [
    OpCase("iou_similarity", {"X": X, "Y": Y}, outputs={"Out": np.array([[1 / 2, 1 / 7, 0]], np.float32)}),
    OpCase(
        "iou_similarity",
        {"X": X, "Y": Y},
        {"box_normalized": False},
        {"Out": np.array([[6 / 9, 4 / 14, 0]], np.float32)},
        name="pixels",
    ),
]
