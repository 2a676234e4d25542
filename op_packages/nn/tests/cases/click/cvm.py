"""Cases of cvm: rows that form instances."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

X = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 0, 1, 2]], np.float32)
COUNTS = np.array([[3, 1], [7, 2]], np.float32)
DY = np.array([[1, 1], [2, 2], [3, 3]], np.float32)
ROWS = [[0, 2, 3]]
SHOWS, CLICKS = np.log(X[:, 0] + 1), np.log(X[:, 1] + 1)
Y = np.concatenate([SHOWS[:, None], (CLICKS - SHOWS)[:, None], X[:, 2:]], axis=1)
CASES = [
    OpCase(
        "cvm",
        {"X": LoDTensor(X, ROWS), "CVM": COUNTS},
        outputs={"Y": LoDTensor(Y, ROWS)},
    ),
    OpCase(
        "cvm_grad",
        {"X": LoDTensor(X, ROWS), "CVM": COUNTS, "Y@GRAD": LoDTensor(DY, ROWS)},
        {"use_cvm": False},
        {"X@GRAD": LoDTensor(np.array([[3, 1, 1, 1], [3, 1, 2, 2], [7, 2, 3, 3]], np.float32), ROWS)},
    ),
]
