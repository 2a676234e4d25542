"""Cases of lstsq."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32, floats

X = floats([1, 0], [0, 2], [0, 0])
Y = floats([3], [4], [5])
NOTHING = np.zeros(0, f32)

CASES = [
    OpCase(
        "lstsq",
        {"X": X, "Y": Y},
        {"driver": "gelsd"},
        {
            "Solution": floats([3], [2]),
            "Residuals": floats(25),
            "Rank": np.array(2, np.int32),
            "SingularValues": floats(2, 1),
        },
        name="tall",
    ),
    OpCase(
        "lstsq",
        {"X": X, "Y": Y},
        outputs={
            "Solution": floats([3], [2]),
            "Residuals": floats(25),
            "Rank": np.zeros(0, np.int32),
            "SingularValues": NOTHING,
        },
        name="gels",
    ),
    OpCase(
        "lstsq",
        {"X": floats([1, 1]), "Y": floats([4, 6])},
        {"driver": "gelsy"},
        {
            "Solution": floats([2, 3], [2, 3]),
            "Residuals": NOTHING,
            "Rank": np.array(1, np.int32),
            "SingularValues": NOTHING,
        },
        name="least_norm",
    ),
    OpCase(
        "lstsq",
        {"X": floats([[1, 0], [0, 1e-3], [0, 0]]), "Y": floats([[3], [4], [5]])},
        {"driver": "gelss", "rcond": 0.01},
        {
            "Solution": floats([[3], [0]]),
            "Residuals": floats([41]),
            "Rank": np.array([1], np.int32),
            "SingularValues": floats([1, 1e-3]),
        },
        name="rank_by_rcond",
    ),
]
