"""Cases of bitwise_right_shift: rounded down, so that -1 stays -1; or as if the number had no sign."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

CASES = [
    OpCase(
        "bitwise_right_shift",
        {"X": np.array([[12, -1], [-5, 7]], np.int64), "Y": np.array([2, 1], np.int64)},
        outputs={"Out": np.array([[3, -1], [-2, 3]], np.int64)},
        name="broadcast",
    ),
    OpCase(
        "bitwise_right_shift",
        {"X": np.array([-128, -128, 127, -1], np.int8), "Y": np.array([7, 100, 8, 1], np.int8)},
        outputs={"Out": np.array([-1, -1, 0, -1], np.int8)},
        name="sign_comes_in",
    ),
    OpCase(
        "bitwise_right_shift",
        {"X": np.array([-128, -1, 64], np.int8), "Y": np.array([7, 4, 8], np.int8)},
        {"is_arithmetic": False},
        {"Out": np.array([1, 15, 0], np.int8)},
        name="zeros_come_in",
    ),
    OpCase(
        "bitwise_right_shift",
        {"X": np.array([128, 255], np.uint8), "Y": np.array([8, 3], np.uint8)},
        outputs={"Out": np.array([0, 31], np.uint8)},
        name="no_sign",
    ),
]
