"""Cases of sparse_mv and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import MATRIX, POINTS, drawn, picked

CASES = []
for name, x in {"csr": MATRIX, "coo": POINTS}.items():
    a, v, g = x.to_dense(), drawn(4, seed=57), drawn(3, seed=58)
    CASES += [
        OpCase("sparse_mv", {"x": x, "vec": v}, {}, {"out": a @ v}, ["x", "vec"], name=name),
        OpCase(
            "sparse_mv_grad",
            {"x": x, "vec": v, "out@GRAD": g},
            {},
            {"x@GRAD": picked(x, np.outer(g, v)), "vec@GRAD": a.T @ g},
            name=name,
        ),
    ]
