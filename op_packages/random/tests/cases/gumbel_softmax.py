"""Cases of the gradient of gumbel_softmax, which draws nothing."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

OUT, G = np.array([[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]]), np.array([[1.0, -2, 3], [0.5, 4, -1]])
CASES = [
    OpCase(
        "gumbel_softmax_grad",
        {"Out": OUT, "Out@GRAD": G},
        {"temperature": 0.5, "axis": axis},
        {"X@GRAD": OUT * (G - (OUT * G).sum(axis, keepdims=True)) / 0.5},
        name=str(axis),
    )
    for axis in (-1, 0)
]
