"""Cases of bincount: weights of each dtype, a longer result, nothing."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([1, 2, 2, 5], np.int32)
CASES = [
    OpCase("bincount", {"X": X}, {}, {"Out": np.array([0, 1, 2, 0, 0, 1])}),
    OpCase("bincount", {"X": X}, {"minlength": 8}, {"Out": np.array([0, 1, 2, 0, 0, 1, 0, 0])}, name="longer"),
    OpCase("bincount", {"X": np.zeros(0, np.int64)}, {"minlength": 3}, {"Out": np.zeros(0, np.int64)}, name="nothing"),
    *(
        OpCase(
            "bincount",
            {"X": X, "Weights": np.array([1, 2, 3, 4], dtype)},
            {},
            {"Out": np.array([0, 1, 5, 0, 0, 4], "float32" if dtype == "float32" else "float64")},
            name=dtype,
        )
        for dtype in ("float32", "float64", "int64")
    ),
]
