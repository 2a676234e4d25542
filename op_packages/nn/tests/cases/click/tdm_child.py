"""Cases of tdm_child: leaves and node 0, which have no children."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase
from oprack.types import VarType

TREE = np.array([[0, 0, 0, 1, 2], [0, 1, 0, 3, 4], [7, 1, 0, 0, 0], [0, 2, 1, 0, 0], [9, 2, 1, 0, 0]])
CASES = [
    OpCase(
        "tdm_child",
        {"X": np.array([[0, 1], [2, 4]]), "TreeInfo": TREE},
        {"child_nums": 2, "dtype": int(VarType.INT64)},
        {
            "Child": np.array([[[0, 0], [3, 4]], [[0, 0], [0, 0]]]),
            "LeafMask": np.array([[[0, 0], [0, 1]], [[0, 0], [0, 0]]]),
        },
    )
]
