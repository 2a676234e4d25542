"""Cases of sparse_add and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import HYBRID, drawn
from ._records import records

BIAS, G = drawn(2, seed=40), HYBRID.with_values(drawn(*HYBRID.values.shape, seed=41))
CASES = [
    *records("sparse_add", np.add, lambda a, b: np.ones_like(a), lambda a, b: np.ones_like(b)),
    OpCase(
        "sparse_add",
        {"x": HYBRID, "y": BIAS},
        {},
        {"out": HYBRID.with_values(HYBRID.values + BIAS)},
        ["x", "y"],
        name="bias",
    ),
    OpCase(
        "sparse_add_grad",
        {"x": HYBRID, "y": BIAS, "out@GRAD": G},
        {},
        {"x@GRAD": G, "y@GRAD": G.values.sum(axis=0)},
        name="bias",
    ),
]
