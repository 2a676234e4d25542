"""Cases of equal_all: other shapes are not equal."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[1.0, 2], [3, 4]])
CASES = [
    OpCase("equal_all", {"X": X, "Y": X + 1e-9}, outputs={"Out": np.array(True)}),
    OpCase("equal_all", {"X": X, "Y": X + 1e-7}, outputs={"Out": np.array(False)}, name="not"),
    OpCase("equal_all", {"X": X, "Y": X[:1]}, outputs={"Out": np.array(False)}, name="shapes"),
]
