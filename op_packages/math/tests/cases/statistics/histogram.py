"""Cases of histogram: its own range and a given one, integers, one value only, nothing."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([1.0, 2, 1, -4, 9, 8.5])
CASES = [
    OpCase("histogram", {"X": X}, {"bins": 4, "min": 0, "max": 4}, {"Out": np.array([0, 2, 1, 0])}, name="given"),
    OpCase("histogram", {"X": X}, {"bins": 5}, {"Out": np.histogram(X, 5)[0]}),
    OpCase("histogram", {"X": np.array([3, 3, 4, 7])}, {"bins": 4}, {"Out": np.array([2, 1, 0, 1])}, name="integers"),
    OpCase("histogram", {"X": np.full(3, 2.0)}, {"bins": 2}, {"Out": np.array([0, 3])}, name="one"),
    OpCase("histogram", {"X": np.zeros(0)}, {"bins": 3}, {"Out": np.zeros(3, np.int64)}, name="nothing"),
]
