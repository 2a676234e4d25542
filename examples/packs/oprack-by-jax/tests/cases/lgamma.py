"""Cases of lgamma; expected outputs come from Python's math, or a definition."""

from __future__ import annotations

import math

import numpy as np
from oprack.testing import OpCase

x = np.array([[0.25, 1.0, 2.5], [3.0, 7.5, 0.75]])
EXPECTED = np.vectorize(math.lgamma)(x)
CASES = [
    OpCase("lgamma", {"X": x.astype(dtype)}, outputs={"Out": EXPECTED.astype(dtype)}, grads=["X"], name=dtype)
    for dtype in ("float32", "float64")
]
CASES.append(OpCase("lgamma", {"X": x[:0]}, outputs={"Out": x[:0]}, name="empty"))
