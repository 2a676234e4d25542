"""Cases of sparse_to_sparse_coo and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.tensor import SparseCooTensor
from oprack.testing import OpCase

from .._data import BATCH, HYBRID, at, drawn, picked

DENSE, COO = HYBRID.to_dense(), SparseCooTensor(np.stack(at(BATCH)), BATCH.values, BATCH.shape)
WEIGHTS = drawn(*HYBRID.values.shape, seed=10)
CASES = [
    OpCase("sparse_to_sparse_coo", {"x": DENSE}, {"sparse_dim": 2}, {"out": HYBRID}, name="dense"),
    OpCase("sparse_to_sparse_coo", {"x": BATCH}, {"sparse_dim": 3}, {"out": COO}, ["x"], name="csr"),
    OpCase(
        "sparse_to_sparse_coo_grad",
        {"x": DENSE, "out@GRAD": HYBRID.with_values(WEIGHTS)},
        {"sparse_dim": 2},
        {"x@GRAD": HYBRID.with_values(WEIGHTS).to_dense()},
        name="dense",
    ),
    OpCase(
        "sparse_to_sparse_coo_grad",
        {"x": BATCH, "out@GRAD": picked(COO, drawn(*BATCH.shape, seed=11))},
        {"sparse_dim": 3},
        {"x@GRAD": picked(BATCH, drawn(*BATCH.shape, seed=11))},
        name="csr",
    ),
]
