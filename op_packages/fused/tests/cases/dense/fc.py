"""Cases of fc."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

from .._data import draw, f32

X, W, B = draw(5, 3), draw(3, 4, seed=1), draw(4, seed=2)
OUT = np.tanh(X.astype("f8") @ W + B).astype(f32)
LOD = [[0, 2, 2, 5]]

CASES = [
    OpCase(
        "fc",
        {"Input": LoDTensor(X, LOD), "W": W, "Bias": B},
        {"activation_type": "tanh"},
        {"Out": LoDTensor(OUT, LOD)},
        name="sequences",
    ),
    OpCase("fc", {"Input": X[:0], "W": W}, outputs={"Out": np.zeros((0, 4), f32)}, name="nothing"),
]
