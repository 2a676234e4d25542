"""Cases of sparse_asin and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_asin", np.arcsin, lambda x: 1 / np.sqrt(1 - x**2))
