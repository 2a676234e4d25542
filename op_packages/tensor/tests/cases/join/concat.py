"""Cases of concat."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.arange(6, dtype=np.float32).reshape(2, 3)
EMPTY = np.zeros((0, 3), np.float32)
CASES = [OpCase("concat", {"X": [EMPTY, X, EMPTY]}, {"axis": 0}, {"Out": X}, name="empty")]
