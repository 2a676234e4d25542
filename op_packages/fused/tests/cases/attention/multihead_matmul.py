"""Cases of multihead_matmul."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import attention, draw

X, W, B = draw(2, 4, 6), draw(6, 3, 6, seed=1) / 2, draw(3, 6, seed=2)
PARTS = (np.einsum("bsn,nim->bsim", X, W) + B).reshape(2, 4, 3, 2, 3)
MASK = draw(2, 2, 4, 4, seed=3)

CASES = [
    OpCase(
        "multihead_matmul",
        {"Input": X, "W": W, "Bias": B},
        {"alpha": 0.5, "head_number": 2},
        {"Out": attention(PARTS, 0.5).reshape(2, 4, 6)},
        atol=1e-5,
        name="two_heads",
    ),
    OpCase(
        "multihead_matmul",
        {"Input": X, "W": W.reshape(6, 18), "Bias": B.reshape(18), "BiasQK": MASK},
        {"alpha": 0.5, "head_number": 2},
        {"Out": attention(PARTS, 0.5, MASK).reshape(2, 4, 6)},
        atol=1e-5,
        name="mask",
    ),
]
