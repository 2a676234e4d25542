"""Cases of renorm: a part that is too long and one that is not, each order."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[3.0, -4, 0.5], [0.5, 0.25, 0.75]])
LONG = {1.0: 7.5, 2.0: np.sqrt(25.25), 3.0: np.cbrt(27 + 64 + 0.125)}
CASES = [
    OpCase(
        "renorm",
        {"X": X},
        {"p": p, "axis": 0, "max_norm": 2.0},
        {"Out": np.stack([X[0] * 2 / norm, X[1]])},
        grads=["X"],
        name=str(p),
    )
    for p, norm in LONG.items()
]
