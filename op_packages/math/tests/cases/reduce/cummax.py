"""Cases of cummax: equal elements, of which the last one counts, NaN, int32 places."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

nan = np.nan
TIES = np.array([[1.0, 3, 3, 2], [4, 4, 1, 5]])
CASES = [
    OpCase(
        "cummax",
        {"x": TIES},
        {"axis": 1},
        {"out": np.array([[1.0, 3, 3, 3], [4, 4, 4, 5]]), "indices": np.array([[0, 1, 2, 2], [0, 1, 1, 3]])},
    ),
    OpCase(
        "cummax",
        {"x": np.array([1, 3, nan, 2, nan])},
        {"dtype": 2},
        {"out": np.array([1, 3, nan, nan, nan]), "indices": np.array([0, 1, 2, 2, 4], np.int32)},
        name="nan",
    ),
    OpCase("cummax", {"x": np.array([0.1, 0.7, 0.3, 0.9, 0.2])}, grads=["x"], loss=["out"], name="slope"),
    OpCase(
        "cummax",
        {"x": np.array(2.0)},
        {"axis": 0},
        {"out": np.array(2.0), "indices": np.array(0)},
        grads=["x"],
        loss=["out"],
        name="scalar",
    ),
]
