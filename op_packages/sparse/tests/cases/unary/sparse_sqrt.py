"""Cases of sparse_sqrt and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_sqrt", np.sqrt, lambda x: 0.5 / np.sqrt(x), reads="out", low=0.1, high=2.0)
