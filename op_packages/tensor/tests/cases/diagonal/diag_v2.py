"""Cases of diag_v2: a vector, a scalar, a matrix, each diagonal."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

ROW, M = np.array([1.0, 2]), np.arange(12.0).reshape(3, 4)
CASES = [
    OpCase(
        "diag_v2",
        {"X": ROW},
        {"offset": 1, "padding_value": 9.0},
        {"Out": np.array([[9.0, 1, 9], [9, 9, 2], [9, 9, 9]])},
        grads=["X"],
        name="padded",
    ),
    OpCase("diag_v2", {"X": ROW}, {"offset": -2}, {"Out": np.diag(ROW, -2)}, grads=["X"], name="below"),
    OpCase("diag_v2", {"X": np.array(3.0)}, {}, {"Out": np.array([[3.0]])}, grads=["X"], name="scalar"),
    *(
        OpCase("diag_v2", {"X": M}, {"offset": k}, {"Out": np.diag(M, k)}, ["X"], name=f"matrix{k}")
        for k in (-1, 0, 2, 9)
    ),
]
