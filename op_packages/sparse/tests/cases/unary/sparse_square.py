"""Cases of sparse_square and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_square", np.square, lambda x: 2 * x)
