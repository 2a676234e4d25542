"""Cases of lu."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import NONE, SINGULAR, draw, f32, floats

PIVOTS = np.array([1, 3], np.int32)
TALL = floats([4, 2], [2, 3], [8, 1])

CASES = [
    OpCase(
        "lu",
        {"X": TALL},
        outputs={
            "Out": floats([8, 1], [0.25, 2.75], [0.5, 6 / 11]),
            "Pivots": np.array([3, 2], np.int32),
            "Infos": np.array([0], np.int32),
        },
        grads=["X"],
        loss=["Out"],
        name="tall",
    ),
    OpCase("lu", {"X": draw(2, 3, 5)}, grads=["X"], loss=["Out"], name="wide"),
    OpCase("lu", {"X": draw(2, 4, 4)}, grads=["X"], loss=["Out"], name="square"),
    OpCase(
        "lu",
        {"X": SINGULAR[:2, :2]},
        outputs={
            "Out": floats([2, 4], [0.5, 0]),
            "Pivots": np.array([2, 2], np.int32),
            "Infos": np.array([2], np.int32),
        },
        name="singular",
    ),
    OpCase(
        "lu",
        {"X": NONE},
        outputs={"Out": NONE, "Pivots": np.zeros((0, 3), np.int32), "Infos": np.zeros(0, np.int32)},
        name="no_matrix",
    ),
    OpCase(
        "lu",
        {"X": np.zeros((3, 0), f32)},
        outputs={"Out": np.zeros((3, 0), f32), "Pivots": np.zeros(0, np.int32), "Infos": np.zeros(1, np.int32)},
        name="no_columns",
    ),
]
