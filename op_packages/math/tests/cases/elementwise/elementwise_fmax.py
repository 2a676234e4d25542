"""Cases of elementwise_fmax: NaN on either side and on both, equal elements, an empty tensor."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

nan = np.nan
NOTHING = np.zeros((0, 3))
X, Y = np.array([1, nan, 2, nan, 3]), np.array([1, 4, nan, nan, -np.inf])
CASES = [
    OpCase("elementwise_fmax", {"X": X, "Y": Y}, outputs={"Out": np.array([1, 4, 2, nan, 3])}),
    OpCase(
        "elementwise_fmax_grad",
        {"X": X, "Y": Y, "Out@GRAD": np.arange(1.0, 6)},
        outputs={"X@GRAD": np.array([1.0, 0, 3, 4, 5]), "Y@GRAD": np.array([0.0, 2, 0, 0, 0])},
    ),
    OpCase(
        "elementwise_fmax", {"X": np.zeros((0, 3)), "Y": np.ones(3)}, outputs={"Out": np.zeros((0, 3))}, name="empty"
    ),
]
