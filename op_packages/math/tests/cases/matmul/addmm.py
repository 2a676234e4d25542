"""Cases of addmm: Input broadcast along each dim."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

rng = np.random.default_rng(4)
X, Y = rng.normal(size=(2, 4)), rng.normal(size=(4, 3))
CASES = [
    OpCase(
        "addmm",
        {"Input": given, "X": X, "Y": Y},
        {"Alpha": 0.5, "Beta": 2.0},
        {"Out": 2 * given + 0.5 * X @ Y},
        grads=["Input", "X", "Y"],
        name="x".join(map(str, given.shape)),
    )
    for given in (rng.normal(size=shape) for shape in ((2, 3), (3,), (1, 3), (2, 1), (1,)))
]
