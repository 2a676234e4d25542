"""Cases of bitwise_or: 12 is 1100 and 10 is 1010 in binary; -1 has all bits set."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [
    OpCase(
        "bitwise_or",
        {"X": np.array([[12, -1], [0, 7]], np.int64), "Y": np.array([10, 6], np.int64)},
        outputs={"Out": np.array([[12 | 10, -1 | 6], [0 | 10, 7 | 6]], np.int64)},
        name="broadcast",
    ),
    OpCase(
        "bitwise_or",
        {"X": np.array([False, False, True, True]), "Y": np.array([False, True, False, True])},
        outputs={"Out": np.array([False, True, True, True])},
        name="bools",
    ),
]
