"""Cases of sparse_values and of its gradient."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import BATCH, HYBRID, drawn

CASES = []
for name, x in {"coo": HYBRID, "csr": BATCH}.items():
    arrived = drawn(*x.values.shape, seed=8)
    CASES += [
        OpCase("sparse_values", {"x": x}, {}, {"out": x.values}, ["x"], name=name),
        OpCase("sparse_values_grad", {"x": x, "out@GRAD": arrived}, {}, {"x@GRAD": x.with_values(arrived)}, name=name),
    ]
