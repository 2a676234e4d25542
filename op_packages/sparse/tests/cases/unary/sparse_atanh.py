"""Cases of sparse_atanh and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_atanh", np.arctanh, lambda x: 1 / (1 - x**2))
