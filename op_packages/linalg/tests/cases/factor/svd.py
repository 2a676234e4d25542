"""Cases of svd."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw, f32, floats

CASES = [
    OpCase(
        "svd",
        {"X": floats([0, 2, 0], [3, 0, 0])},
        outputs={"U": None, "S": floats(3, 2), "VH": None},
        name="two_axes",
    ),
    OpCase("svd", {"X": draw(2, 3, 3)}, grads=["X"], name="square"),
    OpCase("svd", {"X": draw(2, 5, 3)}, grads=["X"], name="tall"),
    OpCase("svd", {"X": draw(3, 5)}, grads=["X"], name="wide"),
    OpCase(
        "svd",
        {"X": np.zeros((0, 3, 2), f32)},
        outputs={"U": np.zeros((0, 3, 2), f32), "S": np.zeros((0, 2), f32), "VH": np.zeros((0, 2, 2), f32)},
        name="no_matrix",
    ),
    OpCase(
        "svd_grad",
        {
            "X": floats([2, 0], [0, 1]),
            "U": np.eye(2, dtype=f32),
            "S": floats(2, 1),
            "VH": np.eye(2, dtype=f32),
            "U@GRAD": floats([0, 3], [0, 0]),
            "S@GRAD": floats(5, 7),
            "VH@GRAD": floats([0, 0], [0, 0]),
        },
        # 3 / (S_2^2 - S_1^2), times S_2 in the second column and times S_1 in the first one
        outputs={"X@GRAD": floats([5, -1], [-2, 7])},
        name="diagonal",
    ),
]
