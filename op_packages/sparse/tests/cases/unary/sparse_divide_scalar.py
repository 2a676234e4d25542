"""Cases of sparse_divide_scalar."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import BATCH, HYBRID

WHOLE = HYBRID.with_values((HYBRID.values * 10).astype(np.int64))
CASES = [
    OpCase("sparse_divide_scalar", {"x": x}, {"scalar": 4.0}, {"out": x.with_values(x.values / 4)}, ["x"], name=name)
    for name, x in (("coo", HYBRID), ("csr", BATCH))
] + [
    OpCase(
        "sparse_divide_scalar",
        {"x": WHOLE},
        {"scalar": 3.0},
        {"out": WHOLE.with_values(np.trunc(WHOLE.values / 3).astype(np.int64))},
        name="integers",
    )
]
