"""Cases of unique_consecutive: elements, rows, nothing."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

ALL = {"return_inverse": True, "return_counts": True}
CASES = [
    OpCase(
        "unique_consecutive",
        {"X": np.array([1.0, 1, 2, 2, 3, 1])},
        ALL | {"dtype": 3},
        {"Out": np.array([1.0, 2, 3, 1]), "Index": np.array([0, 0, 1, 1, 2, 3]), "Counts": np.array([2, 2, 1, 1])},
    ),
    OpCase(
        "unique_consecutive",
        {"X": np.array([[1, 1, 2], [1, 1, 2], [3, 1, 2]])},
        ALL | {"dtype": 2, "axis": [0]},
        {
            "Out": np.array([[1, 1, 2], [3, 1, 2]]),
            "Index": np.array([0, 0, 1], np.int32),
            "Counts": np.array([2, 1], np.int32),
        },
        name="rows",
    ),
    OpCase(
        "unique_consecutive",
        {"X": np.zeros(0)},
        ALL,
        {"Out": np.zeros(0), "Index": np.zeros(0, np.int64), "Counts": np.zeros(0, np.int64)},
        name="empty",
    ),
]
