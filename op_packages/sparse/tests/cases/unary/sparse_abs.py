"""Cases of sparse_abs and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_abs", np.abs, np.sign)
