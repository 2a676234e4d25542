"""Cases of unpool: the size that the windows give, int64 places."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(1, 5, dtype=np.float64).reshape(1, 1, 2, 2)
PLACES = np.array([4, 1, 10, 15], np.int64).reshape(1, 1, 2, 2)
OUT = np.zeros(16)
OUT[[4, 1, 10, 15]] = [1, 2, 3, 4]
CASES = [
    OpCase(
        "unpool",
        {"X": X, "Indices": PLACES},
        {"ksize": [2, 2], "strides": [2, 2], "unpooling_type": "max"},
        {"Out": OUT.reshape(1, 1, 4, 4)},
        grads=["X"],
    )
]
