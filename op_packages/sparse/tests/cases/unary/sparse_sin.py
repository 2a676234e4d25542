"""Cases of sparse_sin and of its gradient."""

from __future__ import annotations

import numpy as np

from .._unary import records

CASES = records("sparse_sin", np.sin, np.cos)
