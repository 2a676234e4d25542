"""Cases of repeat_interleave: numbers for each part, none at all of one, the last dim."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(6.0).reshape(3, 2)
CASES = [
    OpCase(
        "repeat_interleave",
        {"X": X, "RepeatsTensor": np.array([2, 0, 3])},
        {"dim": 0},
        {"Out": np.repeat(X, [2, 0, 3], 0)},
        grads=["X"],
        name="each",
    ),
    OpCase("repeat_interleave", {"X": X}, {"Repeats": 3, "dim": -1}, {"Out": np.repeat(X, 3, 1)}, grads=["X"]),
]
