"""Cases of bitwise_left_shift: 3 is 11 in binary; what leaves the bits of the dtype is lost."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [
    OpCase(
        "bitwise_left_shift",
        {"X": np.array([[3, -1], [0, 7]], np.int64), "Y": np.array([2, 1], np.int64)},
        outputs={"Out": np.array([[12, -2], [0, 14]], np.int64)},
        name="broadcast",
    ),
    OpCase(
        "bitwise_left_shift",
        {"X": np.array([1, 255, 1, 1], np.uint8), "Y": np.array([7, 4, 8, 200], np.uint8)},
        outputs={"Out": np.array([128, 240, 0, 0], np.uint8)},
        name="past_the_end",
    ),
    OpCase(
        "bitwise_left_shift",
        {"X": np.zeros((0, 2), np.int32), "Y": np.ones(2, np.int32)},
        outputs={"Out": np.zeros((0, 2), np.int32)},
        name="empty",
    ),
]
