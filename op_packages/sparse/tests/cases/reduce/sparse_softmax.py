"""Cases of sparse_softmax and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.tensor import SparseTensor
from oprack.testing import OpCase

from .._data import BATCH, HYBRID, MATRIX, NOTHING, POINTS, at, drawn, picked


def case(name: str, x: SparseTensor, axis: int) -> list[OpCase]:
    power = np.zeros(x.shape, np.float64)
    power[at(x)] = np.exp(x.values)
    total = power.sum(axis=axis, keepdims=True)
    w = power / np.where(total, total, 1)
    out = picked(x, w)
    g = drawn(*x.shape, seed=82)
    back = w * (g - (w * g).sum(axis=axis, keepdims=True))
    return [
        OpCase("sparse_softmax", {"x": x}, {"axis": axis}, {"out": out}, ["x"] if x.nnz else [], name=name),
        OpCase(
            "sparse_softmax_grad",
            {"out": out, "out@GRAD": picked(x, g)},
            {"axis": axis},
            {"x@GRAD": picked(x, back)},
            name=name,
        ),
    ]


CASES = [
    *case("csr", MATRIX, -1),
    *case("batch", BATCH, -1),
    *case("coo", POINTS, -1),
    *case("columns", POINTS, 0),
    *case("dense_dim", HYBRID, -1),
    *case("beside_dense_dim", HYBRID, 1),
    *case("nothing", NOTHING, -1),
]
