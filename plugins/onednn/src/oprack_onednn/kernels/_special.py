"""NaN and infinities, where oneDNN treats them otherwise than NumPy: a look at an array finds them."""

from __future__ import annotations

import math

import numpy as np

NOT_ORDINARY = "the array holds NaN or infinities"


def is_ordinary(array: np.ndarray) -> bool:
    """Whether a float array holds no NaN and no infinity. NumPy's maximum and minimum hand on NaN."""
    if not array.size:
        return True
    row = array.ravel("K")  # a view where the array is dense
    # Two passes without memory of their own; isfinite would write a mask as long as the array.
    return math.isfinite(float(row.max()) - float(row.min()))
