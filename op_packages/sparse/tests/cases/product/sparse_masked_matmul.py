"""Cases of sparse_masked_matmul and of its gradient."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import BATCH, MATRIX, POINTS, drawn, picked

CASES = []
for name, mask in {"csr": MATRIX, "coo": POINTS, "batch": BATCH}.items():
    *batch, rows, columns = mask.shape
    a, b = drawn(*batch, rows, 5, seed=54), drawn(*batch, 5, columns, seed=55)
    arrived = picked(mask, drawn(*mask.shape, seed=56))
    g = arrived.to_dense()
    CASES += [
        OpCase(
            "sparse_masked_matmul", {"x": a, "y": b, "mask": mask}, {}, {"out": picked(mask, a @ b)}, ["x", "y"], name
        ),
        OpCase(
            "sparse_masked_matmul_grad",
            {"x": a, "y": b, "out@GRAD": arrived},
            {},
            {"x@GRAD": g @ b.swapaxes(-1, -2), "y@GRAD": a.swapaxes(-1, -2) @ g},
            name=name,
        ),
    ]
