"""Cases of sparse_matmul and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import BATCH, MATRIX, NOTHING, POINTS, coo, csr, drawn, holes, picked

CASES = []
for name, x in {"csr": MATRIX, "coo": POINTS, "batch": BATCH, "nothing": NOTHING}.items():
    a, b = x.to_dense(), drawn(*x.shape[:-2], 4, 2, seed=50)
    g = drawn(*a.shape[:-1], 2, seed=51)
    CASES += [
        OpCase("sparse_matmul", {"x": x, "y": b}, {}, {"out": a @ b}, ["x", "y"] if x.nnz else [], name=name),
        OpCase(
            "sparse_matmul_grad",
            {"x": x, "y": b, "out@GRAD": g},
            {},
            {"x@GRAD": picked(x, g @ b.swapaxes(-1, -2)), "y@GRAD": a.swapaxes(-1, -2) @ g},
            name=name,
        ),
    ]
for name, x, made in (("sparse_csr", MATRIX, csr), ("sparse_coo", POINTS, coo), ("sparse_batch", BATCH, csr)):
    y = made(holes(drawn(*x.shape[:-2], 4, 3, seed=52), seed=52))
    a, b = x.to_dense(), y.to_dense()
    out = made(((a != 0).astype(np.float32) @ (b != 0)).astype(np.float32))
    g = drawn(*out.shape, seed=53) * (out.to_dense() != 0)
    CASES += [
        OpCase("sparse_matmul", {"x": x, "y": y}, {}, {"out": picked(out, a @ b)}, ["x", "y"], name=name),
        OpCase(
            "sparse_matmul_grad",
            {"x": x, "y": y, "out@GRAD": picked(out, g)},
            {},
            {"x@GRAD": picked(x, g @ b.swapaxes(-1, -2)), "y@GRAD": picked(y, a.swapaxes(-1, -2) @ g)},
            name=name,
        ),
    ]
