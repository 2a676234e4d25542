"""Cases of nanmedian: even and odd counts, rows of NaN alone, several dims, integers, nothing."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

nan = np.nan
X = np.array([[1, nan, 3, 2], [nan, nan, nan, nan], [5, 1, 4, 2]])
SMOOTH = np.random.default_rng(1).normal(size=(3, 4, 2))
CASES = [
    OpCase(
        "nanmedian",
        {"X": X},
        {"axis": [1], "keepdim": False},
        {"Out": np.array([2, nan, 3]), "MedianIndex": np.array([[3, 3], [-1, -1], [3, 2]])},
    ),
    OpCase("nanmedian", {"X": X}, {"axis": []}, {"Out": np.array([[2.0]])}, name="all"),
    OpCase("nanmedian", {"X": np.array([1, 2, 5, 9])}, {"keepdim": False}, {"Out": np.array(3)}, name="integers"),
    OpCase("nanmedian", {"X": np.zeros((2, 0))}, {"axis": [1]}, {"Out": np.full((2, 1), nan)}, name="nothing"),
    OpCase(
        "nanmedian",
        {"X": SMOOTH},
        {"axis": [0, -1], "keepdim": False},
        {"Out": np.median(SMOOTH, (0, 2))},
        grads=["X"],
        name="slope",
    ),
    OpCase("nanmedian", {"X": SMOOTH[:, :3]}, {"axis": [1]}, grads=["X"], name="odd"),
]
