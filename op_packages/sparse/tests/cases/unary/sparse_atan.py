"""Cases of sparse_atan and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_atan", np.arctan, lambda x: 1 / (1 + x**2))
