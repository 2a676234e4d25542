"""Cases of sparse_coalesce and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.tensor import SparseCooTensor
from oprack.testing import OpCase

from .._data import NOTHING, TWICE, drawn

V = TWICE.values
SUMS = SparseCooTensor([[0, 0, 2], [1, 3, 1]], np.array([V[1], V[3], V[0] + V[2]]), [3, 4])
ARRIVED = SUMS.with_values(drawn(3, seed=9))
G = ARRIVED.values
CASES = [
    OpCase("sparse_coalesce", {"x": TWICE}, {}, {"out": SUMS}, ["x"], name="twice"),
    OpCase("sparse_coalesce", {"x": SUMS}, {}, {"out": SUMS}, ["x"], name="once"),
    OpCase(
        "sparse_coalesce_grad", {"x": SUMS, "out@GRAD": ARRIVED}, {}, {"x@GRAD": ARRIVED}, name="of_the_same_pattern"
    ),
    OpCase("sparse_coalesce", {"x": NOTHING}, {}, {"out": NOTHING}, name="nothing"),
    OpCase(
        "sparse_coalesce_grad",
        {"x": TWICE, "out@GRAD": ARRIVED},
        {},
        {"x@GRAD": TWICE.with_values(np.array([G[2], G[0], G[2], G[1]]))},
    ),
]
