"""Cases of matmul."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import f32, x, y

CASES = [
    OpCase(
        "matmul",
        {"X": x[0, 0], "Y": y},
        {"transpose_X": True, "transpose_Y": True},
        {"Out": np.outer(x[0, 0], y)},
        ["X", "Y"],
        name="outer",
    ),
    OpCase(
        "matmul",
        {"X": x[0], "Y": np.ones((4, 2), f32)},
        {"head_number": 2},
        {"Out": np.repeat(x[0].reshape(3, 2, 2).sum(-1), 2, -1)},
        name="heads",
    ),
]
