"""Cases of sparse_to_dense and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import BATCH, HYBRID, NOTHING, TWICE, at, drawn


def dense(x) -> np.ndarray:
    found = np.zeros(x.shape, np.float32)
    np.add.at(found, at(x), x.values)
    return found


CASES = []
for name, x in {"coo": HYBRID, "csr": BATCH, "twice": TWICE, "nothing": NOTHING}.items():
    arrived = drawn(*x.shape, seed=7)
    CASES += [
        OpCase("sparse_to_dense", {"x": x}, {}, {"out": dense(x)}, ["x"] if x.nnz else [], name=name),
        OpCase(
            "sparse_to_dense_grad",
            {"x": x, "out@GRAD": arrived},
            {},
            {"x@GRAD": x.with_values(arrived[at(x)])},
            name=name,
        ),
    ]
