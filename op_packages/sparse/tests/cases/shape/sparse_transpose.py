"""Cases of sparse_transpose and of its gradient."""

from __future__ import annotations

from .._data import BATCH, HYBRID, MATRIX, coo
from ._records import records

CASES = [
    case
    for name, x, perm in (
        ("matrix", MATRIX, [1, 0]),
        ("batch", BATCH, [2, 0, 1]),
        ("cube", coo(BATCH.to_dense()), [2, 1, 0]),
        ("hybrid", HYBRID, [1, 0, 2]),
    )
    for case in records("sparse_transpose", name, x, {"perm": perm}, lambda a, perm=perm: a.transpose(perm))
]
