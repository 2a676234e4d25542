"""Cases of elementwise_heaviside: the step itself, NaN, and Y of the higher rank."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X, Y = np.array([-2.0, 0, np.nan, 3]), np.array([[0.5], [7]])
CASES = [
    OpCase(
        "elementwise_heaviside",
        {"X": X, "Y": Y},
        outputs={"Out": np.array([[0, 0.5, 0, 1], [0, 7, 0, 1]])},
    ),
    OpCase(
        "elementwise_heaviside_grad",
        {"X": X, "Y": Y, "Out@GRAD": np.arange(8.0).reshape(2, 4)},
        outputs={"X@GRAD": np.zeros(4), "Y@GRAD": np.array([[1.0], [5]])},
    ),
]
