"""Cases of fused_matmul: a factor and an activation, a sum, and reshapes and transpositions as attention has them."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw

X, Y, R = draw(2, 3, 4), draw(2, 5, 4, seed=1), draw(2, 3, 5, seed=2)
HEADS = draw(2, 2, 2, 3, seed=3)
SPLIT = X.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3)
JOINED = np.matmul(SPLIT, HEADS).transpose(0, 2, 1, 3).reshape(2, 3, 6)

CASES = [
    OpCase(
        "fused_matmul",
        {"X": X, "Y": Y},
        {"trans_y": True, "matmul_alpha": 0.5, "fuse_activation": "relu", "fused_output_scale": 2.0},
        {"Out": np.maximum(np.einsum("bik,bjk->bij", X, Y), 0)},
        name="relu",
    ),
    OpCase(
        "fused_matmul",
        {"X": X.transpose(0, 2, 1).copy(), "Y": Y, "ResidualData": R},
        {"trans_x": True, "trans_y": True},
        {"Out": np.einsum("bik,bjk->bij", X, Y) + R},
        name="sum",
    ),
    OpCase(
        "fused_matmul",
        {"X": X, "Y": HEADS},
        {
            "fused_reshape_X": [0, 3, 2, 2],
            "fused_transpose_X": [0, 2, 1, 3],
            "fused_transpose_Out": [0, 2, 1, 3],
            "fused_reshape_Out": [0, 3, 6],
        },
        {"Out": JOINED},
        name="heads",
    ),
]
