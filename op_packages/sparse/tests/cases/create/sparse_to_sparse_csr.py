"""Cases of sparse_to_sparse_csr and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.tensor import SparseCooTensor
from oprack.testing import OpCase

from .._data import BATCH, MATRIX, at, drawn, picked

UNSORTED = SparseCooTensor(np.stack(at(BATCH))[:, ::-1].copy(), BATCH.values[::-1].copy(), BATCH.shape)
CASES = [
    OpCase("sparse_to_sparse_csr", {"x": MATRIX.to_dense()}, {}, {"out": MATRIX}, name="dense"),
    OpCase("sparse_to_sparse_csr", {"x": BATCH.to_dense()}, {}, {"out": BATCH}, name="batch"),
    OpCase("sparse_to_sparse_csr", {"x": UNSORTED}, {}, {"out": BATCH}, ["x"], name="coo"),
    OpCase(
        "sparse_to_sparse_csr_grad",
        {"x": MATRIX.to_dense(), "out@GRAD": MATRIX},
        {},
        {"x@GRAD": MATRIX.to_dense()},
        name="dense",
    ),
    OpCase(
        "sparse_to_sparse_csr_grad",
        {"x": UNSORTED, "out@GRAD": picked(BATCH, drawn(*BATCH.shape, seed=12))},
        {},
        {"x@GRAD": picked(UNSORTED, drawn(*BATCH.shape, seed=12))},
        name="coo",
    ),
]
