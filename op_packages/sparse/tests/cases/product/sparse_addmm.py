"""Cases of sparse_addmm and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import MATRIX, POINTS, coo, csr, drawn, holes, picked

ATTRS = {"beta": 0.5, "alpha": 2.0}
CASES = []
for name, x in {"csr": MATRIX, "coo": POINTS}.items():
    a, b, c, g = x.to_dense(), drawn(4, 2, seed=59), drawn(3, 2, seed=60), drawn(3, 2, seed=61)
    given = {"input": c, "x": x, "y": b}
    back = {"input@GRAD": 0.5 * g, "x@GRAD": picked(x, 2 * g @ b.T), "y@GRAD": 2 * a.T @ g}
    CASES += [
        OpCase("sparse_addmm", given, ATTRS, {"out": 0.5 * c + 2 * a @ b}, ["input", "x", "y"], name=name),
        OpCase("sparse_addmm_grad", given | {"out@GRAD": g}, ATTRS, back, name=name),
    ]
for name, x, made in (("sparse_csr", MATRIX, csr), ("sparse_coo", POINTS, coo)):
    y, z = made(holes(drawn(4, 3, seed=62), seed=62)), made(holes(drawn(3, 3, seed=63), seed=63))
    a, b, c = x.to_dense(), y.to_dense(), z.to_dense()
    out = made(((a != 0).astype(np.float32) @ (b != 0) + (c != 0)).astype(np.float32))
    g = drawn(3, 3, seed=64) * (out.to_dense() != 0)
    given = {"input": z, "x": x, "y": y}
    back = {"input@GRAD": picked(z, 0.5 * g), "x@GRAD": picked(x, 2 * g @ b.T), "y@GRAD": picked(y, 2 * a.T @ g)}
    CASES += [
        OpCase("sparse_addmm", given, ATTRS, {"out": picked(out, 0.5 * c + 2 * a @ b)}, ["input", "x", "y"], name=name),
        OpCase("sparse_addmm_grad", given | {"out@GRAD": picked(out, g)}, ATTRS, back, name=name),
    ]
