"""Cases of sparse_tan and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_tan", np.tan, lambda x: 1 + np.tan(x) ** 2)
