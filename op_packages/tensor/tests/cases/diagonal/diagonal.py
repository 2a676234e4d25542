"""Cases of diagonal: axes in either order, diagonals beside the matrix."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(24.0).reshape(2, 3, 4)
CASES = [
    OpCase(
        "diagonal",
        {"Input": X},
        {"offset": offset, "axis1": one, "axis2": two},
        {"Out": np.diagonal(X, offset, one, two)},
        grads=["Input"],
        name=f"{offset}-{one}-{two}",
    )
    for offset, one, two in [(0, 0, 1), (1, 2, 0), (-1, 1, 2), (-1, -1, 1), (9, 1, 2)]
]
