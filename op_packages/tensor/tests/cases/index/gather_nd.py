"""Cases of gather_nd."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
PLACES = np.array([[1, 0], [1, 0], [0, 2]])
CASES = [OpCase("gather_nd", {"X": X, "Index": PLACES}, outputs={"Out": np.float32([4, 4, 3])}, grads=["X"])]
