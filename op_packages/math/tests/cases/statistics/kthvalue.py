"""Cases of kthvalue: equal elements, NaN, which is the greatest, and a scalar."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[2.0, 1, 1, 2], [3, 1, np.nan, 2], [4, 3, 2, 1]])
CASES = [
    OpCase(
        "kthvalue",
        {"X": X},
        {"k": 2, "axis": 1},
        {"Out": np.array([1.0, 2, 2]), "Indices": np.array([2, 3, 2])},
    ),
    OpCase(
        "kthvalue",
        {"X": X},
        {"k": 4, "axis": -1, "keepdim": True},
        {"Out": np.array([[2], [np.nan], [4]]), "Indices": np.array([[3], [2], [0]])},
        name="greatest",
    ),
    OpCase(
        "kthvalue",
        {"X": np.array(5.0)},
        {"k": 1},
        {"Out": np.array(5.0), "Indices": np.array(0)},
        grads=["X"],
        loss=["Out"],
        name="scalar",
    ),
    OpCase("kthvalue", {"X": X[2:]}, {"k": 3, "axis": 1}, grads=["X"], loss=["Out"], name="slope"),
]
