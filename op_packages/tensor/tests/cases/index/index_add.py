"""Cases of index_add: a place named twice, negative places, the last dim."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X, MORE = np.arange(12.0).reshape(3, 4), np.arange(1.0, 13).reshape(3, 4)
ROWS, COLUMNS = X.copy(), X.copy()
np.add.at(ROWS, [0, 2, 0], MORE)
np.add.at(COLUMNS, (slice(None), [1, -1]), MORE[:, :2])
CASES = [
    OpCase(
        "index_add",
        {"X": X, "Index": np.array([0, 2, 0]), "AddValue": MORE},
        {"axis": 0},
        {"Out": ROWS},
        grads=["X", "AddValue"],
    ),
    OpCase(
        "index_add",
        {"X": X, "Index": np.array([1, -1], np.int32), "AddValue": MORE[:, :2]},
        {"axis": -1},
        {"Out": COLUMNS},
        grads=["X", "AddValue"],
        name="columns",
    ),
]
