"""Cases of sparse_asinh and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_asinh", np.arcsinh, lambda x: 1 / np.sqrt(x**2 + 1))
