"""Cases of top_k."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
CASES = [OpCase("top_k", {"X": X}, {"k": 2}, {"Out": np.float32([[3, 2], [6, 5]])}, grads=["X"])]
