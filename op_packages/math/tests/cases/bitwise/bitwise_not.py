"""Cases of bitwise_not."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [
    OpCase("bitwise_not", {"X": np.array([0, 5, -1], np.int32)}, outputs={"Out": np.array([-1, -6, 0], np.int32)}),
    OpCase("bitwise_not", {"X": np.array([0, 5, 255], np.uint8)}, outputs={"Out": np.array([255, 250, 0], np.uint8)}),
    OpCase("bitwise_not", {"X": np.array([True, False])}, outputs={"Out": np.array([False, True])}),
]
