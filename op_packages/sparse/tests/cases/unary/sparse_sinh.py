"""Cases of sparse_sinh and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_sinh", np.sinh, np.cosh)
