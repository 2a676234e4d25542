"""Cases of put_along_axis: three values of the second row go to one place, in each way to reduce them."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
PLACES = np.array([[0, 0, 1], [2, 2, 2]], np.int64)
VALUES = np.array([[5.0, 2.0, 3.0], [0.5, 7.0, -4.0]], np.float32)
CASES = [
    OpCase(
        "put_along_axis",
        {"Input": X, "Index": PLACES, "Value": VALUES},
        {"Axis": 1, "Reduce": reduce, "Include_self": include_self},
        {"Result": np.array(expected, np.float32)},
        grads=["Input", "Value"],
        name=f"{reduce}-{include_self}",
    )
    for reduce, include_self, expected in [
        ("assign", True, [[2, 3, 3], [4, 5, -4]]),
        ("add", True, [[8, 5, 3], [4, 5, 9.5]]),
        ("add", False, [[7, 3, 3], [4, 5, 3.5]]),
        ("mul", True, [[10, 6, 3], [4, 5, -84]]),
        ("mean", True, [[8 / 3, 2.5, 3], [4, 5, 9.5 / 4]]),
        ("mean", False, [[3.5, 3, 3], [4, 5, 3.5 / 3]]),
        ("amax", True, [[5, 3, 3], [4, 5, 7]]),
        ("amin", False, [[2, 3, 3], [4, 5, -4]]),
    ]
]
