"""Cases of gather."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
CASES = [
    OpCase("gather", {"X": X, "Index": np.zeros(0, np.int64)}, outputs={"Out": X[:0]}, name="empty"),
    OpCase("gather", {"X": X, "Index": np.array([2, 0, 2])}, {"axis": 1}, {"Out": X[:, [2, 0, 2]]}, grads=["X"]),
]
