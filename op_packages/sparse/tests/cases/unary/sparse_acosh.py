"""Cases of sparse_acosh and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_acosh", np.arccosh, lambda x: 1 / np.sqrt(x**2 - 1), low=1.2, high=3.0)
