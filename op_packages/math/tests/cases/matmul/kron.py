"""Cases of kron: other ranks, scalars, complex numbers."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

rng = np.random.default_rng(4)
SHAPES = [((2, 3), (2, 2)), ((3,), (2, 2)), ((), (2, 2)), ((1, 2, 3), (3, 1, 2)), ((), ())]
PAIRS = [(rng.normal(size=x), rng.normal(size=y)) for x, y in SHAPES]
PAIRS.append((rng.normal(size=(2, 2)) + 1j, rng.normal(size=2) - 2j))
CASES = [
    OpCase("kron", {"X": x, "Y": y}, outputs={"Out": np.kron(x, y)}, grads=["X", "Y"], name=str(i))
    for i, (x, y) in enumerate(PAIRS)
]
