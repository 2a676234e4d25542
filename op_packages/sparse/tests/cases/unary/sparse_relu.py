"""Cases of sparse_relu and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_relu", lambda x: np.maximum(x, 0), lambda x: x > 0, reads="out")
