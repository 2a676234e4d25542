"""Cases of sparse_relu6 and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records(
    "sparse_relu6", lambda x: np.clip(x, 0, 6), lambda x: (x > 0) & (x < 6), reads="out", low=-8.0, high=12.0
)
