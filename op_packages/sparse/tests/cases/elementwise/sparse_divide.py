"""Cases of sparse_divide and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import MATRIX, POINTS, coo, csr, drawn, picked

CASES = []
for name, x, whole in (("coo", POINTS, coo), ("csr", MATRIX, csr)):
    every, g = whole(np.ones(x.shape, np.float32)), drawn(*x.shape, seed=43)
    y = picked(every, drawn(*x.shape, seed=42, low=0.5, high=2.0))
    a, b = x.to_dense(), y.to_dense()
    CASES += [
        OpCase("sparse_divide", {"x": x, "y": y}, {}, {"out": picked(every, a / b)}, ["x", "y"], name=name),
        OpCase(
            "sparse_divide_grad",
            {"x": x, "y": y, "out@GRAD": picked(every, g)},
            {},
            {"x@GRAD": picked(x, g / b), "y@GRAD": picked(y, -g * a / b**2)},
            name=name,
        ),
    ]
with np.errstate(all="ignore"):
    QUOTIENT = POINTS.to_dense() / POINTS.to_dense()
EVERY = coo(np.ones(POINTS.shape, np.float32))
CASES.append(OpCase("sparse_divide", {"x": POINTS, "y": POINTS}, {}, {"out": picked(EVERY, QUOTIENT)}, name="by_zero"))
