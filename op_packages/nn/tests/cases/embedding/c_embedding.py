"""Cases of c_embedding: ids before and behind the rows that are here."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

W = np.arange(6, dtype=np.float64).reshape(3, 2)
IDS = np.array([[4, 9], [12, 5], [4, 6]])
ZERO = [0, 0]
CASES = [
    OpCase(
        "c_embedding",
        {"W": W, "Ids": IDS},
        {"start_index": 4},
        {"Out": np.array([[W[0], ZERO], [ZERO, W[1]], [W[0], W[2]]])},
        grads=["W"],
    )
]
