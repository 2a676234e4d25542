"""Cases of dist: each order, broadcasting, no difference at all."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X, Y = np.array([[1.0, -2, 4], [0.5, 3, -1]]), np.array([0.25, 1, -1.5])
GAP = np.abs(X - Y)
WANT = {0.0: 6.0, 1.0: GAP.sum(), 2.0: np.sqrt((GAP**2).sum()), 3.0: np.cbrt((GAP**3).sum())}
WANT |= {np.inf: GAP.max(), -np.inf: GAP.min()}
CASES = [
    *(
        OpCase("dist", {"X": X, "Y": Y}, {"p": p}, {"Out": np.array(want)}, grads=["X", "Y"], name=str(p))
        for p, want in WANT.items()
    ),
    OpCase(
        "dist_grad",
        {"X": X, "Y": X, "Out": np.array(0.0), "Out@GRAD": np.array(3.0)},
        {"p": 2.0},
        {"X@GRAD": np.zeros((2, 3)), "Y@GRAD": np.zeros((2, 3))},
        name="equal",
    ),
]
