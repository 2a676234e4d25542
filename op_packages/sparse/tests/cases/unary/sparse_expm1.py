"""Cases of sparse_expm1 and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_expm1", np.expm1, np.exp, reads="out")
