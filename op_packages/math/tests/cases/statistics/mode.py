"""Cases of mode: of several values the smallest, and its last place."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[2.0, 1, 1, 2], [3, 1, 2, 2], [4, 3, 2, 1]])
CASES = [
    OpCase("mode", {"X": X}, {"axis": 1}, {"Out": np.array([1.0, 2, 1]), "Indices": np.array([2, 3, 3])}),
    OpCase(
        "mode",
        {"X": X},
        {"axis": 0},
        {"Out": np.array([2.0, 1, 2, 2]), "Indices": np.array([0, 1, 2, 1])},
        name="columns",
    ),
    OpCase("mode", {"X": np.array(5)}, {}, {"Out": np.array(5), "Indices": np.array(0)}, name="scalar"),
    OpCase(
        "mode_grad",
        {"X": X, "Indices": np.array([2, 3, 3]), "Out@GRAD": np.array([5.0, 6, 7])},
        {"axis": 1},
        {"X@GRAD": np.array([[0.0, 0, 5, 0], [0, 0, 0, 6], [0, 0, 0, 7]])},
    ),
]
