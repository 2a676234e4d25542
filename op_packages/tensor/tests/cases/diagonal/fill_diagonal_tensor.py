"""Cases of fill_diagonal_tensor: dims in either order."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

Y = np.arange(1.0, 10).reshape(3, 3)
OUT = np.zeros((3, 4, 3))
for _i in range(3):
    OUT[_i, :3, _i] = Y[:, _i]
CASES = [
    OpCase(
        "fill_diagonal_tensor",
        {"X": np.zeros((3, 4)), "Y": Y[0]},
        {"offset": 1},
        {"Out": np.concatenate([np.zeros((3, 1)), np.diag(Y[0])], 1)},
        grads=["X"],
    ),
    OpCase(
        "fill_diagonal_tensor",
        {"X": np.zeros((3, 4, 3))[:, :3], "Y": Y},
        {"dim1": 2, "dim2": 0},
        {"Out": OUT[:, :3]},
        grads=["X"],
        name="turned",
    ),
]
