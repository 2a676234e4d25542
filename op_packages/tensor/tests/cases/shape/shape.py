"""Cases of shape."""

from __future__ import annotations

import numpy as np
from oprack.tensor import SelectedRows
from oprack.testing import OpCase

ROWS = SelectedRows([4, 1], np.ones((2, 3), np.float32), 6)
EMPTY = np.zeros((0, 3), np.float32)
CASES = [
    OpCase("shape", {"Input": ROWS}, outputs={"Out": np.array([2, 3], np.int32)}, name="rows"),
    OpCase("shape", {"Input": EMPTY}, outputs={"Out": np.array([0, 3], np.int32)}, name="empty"),
]
