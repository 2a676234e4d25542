"""Cases of lu_unpack."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw, f32, floats

WIDE, TALL = draw(2, 3, 5), draw(5, 3)
PIVOTS = np.array([[2, 2, 3], [1, 3, 3]], np.int32)
ROWS = np.array([3, 5, 3], np.int32)  # rows 1 2 3 4 5 become 3 5 1 4 2
NOTHING = np.zeros(0, f32)

CASES = [
    OpCase(
        "lu_unpack",
        {"X": WIDE, "Pivots": PIVOTS},
        outputs={
            "Pmat": floats([[0, 1, 0], [1, 0, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1], [0, 1, 0]]),
            "L": np.tril(WIDE[..., :3], -1) + np.eye(3, dtype=f32),
            "U": np.triu(WIDE),
        },
        grads=["X"],
        name="wide",
    ),
    OpCase(
        "lu_unpack",
        {"X": TALL, "Pivots": ROWS},
        outputs={
            "Pmat": np.eye(5, dtype=f32)[:, [2, 4, 0, 3, 1]].copy(),
            "L": np.tril(TALL, -1) + np.eye(5, 3, dtype=f32),
            "U": np.triu(TALL[:3]),
        },
        grads=["X"],
        name="tall",
    ),
    OpCase(
        "lu_unpack",
        {"X": TALL, "Pivots": ROWS},
        {"unpack_pivots": False},
        {"Pmat": NOTHING, "U": np.triu(TALL[:3])},
        name="no_permutation",
    ),
    OpCase(
        "lu_unpack",
        {"X": TALL, "Pivots": ROWS},
        {"unpack_ludata": False},
        {"Pmat": np.eye(5, dtype=f32)[:, [2, 4, 0, 3, 1]].copy(), "L": NOTHING, "U": NOTHING},
        name="permutation_alone",
    ),
]
