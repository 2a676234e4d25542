"""Cases of sparse_subtract and of its gradient."""

from __future__ import annotations

import numpy as np

from ._records import records

CASES = records("sparse_subtract", np.subtract, lambda a, b: np.ones_like(a), lambda a, b: -np.ones_like(b))
