"""Cases of sparse_leaky_relu and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records(
    "sparse_leaky_relu",
    lambda x: np.where(x > 0, x, 0.25 * x),
    lambda x: np.where(x > 0, 1, 0.25),
    attrs={"alpha": 0.25},
)
