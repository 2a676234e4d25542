"""Cases of rrelu; in training it draws its slopes."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.array([-2.0, -0.5, 0.0, 3.0])
DOUT = np.array([0.7, -1.3, 0.4, 2.1])
SLOPE = np.where(X >= 0, 1.0, 0.2)
CASES = [
    OpCase(
        "rrelu",
        {"X": X},
        {"is_test": True, "lower": 0.1, "upper": 0.3},
        {"Out": X * SLOPE, "Noise": SLOPE},
        name="test",
    ),
    OpCase("rrelu_grad", {"X": X, "Noise": SLOPE, "Out@GRAD": DOUT}, {}, {"X@GRAD": DOUT * SLOPE}),
]
