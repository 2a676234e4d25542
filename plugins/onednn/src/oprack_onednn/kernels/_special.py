"""NaN and infinities, where oneDNN treats them otherwise than NumPy: one pass over an array finds them."""

from __future__ import annotations

import math

import numpy as np


def is_ordinary(array: np.ndarray) -> bool:
    """Whether an array holds no NaN and no infinity, and nothing so large that the sum of squares overflows.

    False for some arrays of large numbers as well: what is done then has to be right for any array.
    """
    row = array.ravel("K")  # a view where the array is dense
    with np.errstate(over="ignore"):
        return math.isfinite(np.dot(row, row))
