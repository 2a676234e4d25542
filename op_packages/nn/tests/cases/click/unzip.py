"""Cases of unzip: instances with a row and without, rows that none takes, and no instance."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
DY = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32)
CASES = [
    OpCase(
        "unzip",
        {"X": X, "lod": np.array([0, 2, 2, 2, 4], dtype)},
        outputs={"Y": np.array([[1, 2], [0, 0], [0, 0], [3, 4]], np.float32)},
        grads=["X"],
        name=dtype,
    )
    for dtype in ("int32", "int64")
]
CASES += [
    OpCase(
        "unzip", {"X": X[:0], "lod": np.zeros(3, np.int64)}, outputs={"Y": np.zeros((2, 2), np.float32)}, name="none"
    ),
    OpCase(
        "unzip_grad",
        {"X": X, "lod": np.array([0, 0, 2, 2, 4]), "Y@GRAD": DY},
        outputs={"X@GRAD": np.array([[3, 4], [7, 8], [0, 0]], np.float32)},
    ),
]
