"""Cases of sparse_log1p and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_log1p", np.log1p, lambda x: 1 / (1 + x))
