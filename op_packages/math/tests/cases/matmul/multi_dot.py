"""Cases of multi_dot: vectors at the ends, two factors, and four that are cheaper in another order."""

from __future__ import annotations

from functools import reduce

import numpy as np
from oprack.testing import OpCase

rng = np.random.default_rng(4)
SHAPES = {
    "vectors": [(3,), (3, 2), (2,)],
    "two": [(2, 3), (3, 4)],
    "four": [(2, 30), (30, 4), (4, 1), (1, 5)],
    "dot": [(3,), (3,)],
}
FACTORS = {name: [rng.normal(size=s) for s in shapes] for name, shapes in SHAPES.items()}
CASES = [
    OpCase("multi_dot", {"X": f}, outputs={"Out": np.asarray(reduce(np.matmul, f))}, grads=["X"], name=name)
    for name, f in FACTORS.items()
]
