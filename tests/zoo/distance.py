"""How far apart two answers are. NumPy only, since Paddle's process imports it, too."""

from __future__ import annotations

import numpy as np


def distance(got: np.ndarray, want: np.ndarray) -> float:
    """0 for what is equal, infinity for what can't be compared; else the largest relative difference of floats.

    Relative to the value and to the largest one together.
    """
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return float("inf")
    if want.dtype.kind not in "fc":
        return 0.0 if np.array_equal(got, want) else float("inf")
    if not want.size:
        return 0.0
    if not np.array_equal(np.isfinite(got), np.isfinite(want)):
        return float("inf")
    one, other = (np.where(np.isfinite(want), a, 0).astype("float64") for a in (got, want))
    return float((np.abs(one - other) / (np.abs(other) + np.abs(other).max() + 1e-30)).max())
