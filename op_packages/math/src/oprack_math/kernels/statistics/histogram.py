"""Kernel of histogram."""

from __future__ import annotations

import math

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL


@kernel("histogram", place=BOTH, dtypes=REAL)
def histogram(X: Array, *, bins: int, min: int, max: int, xp: ArrayModule) -> Array:
    """How many elements are in each bin."""
    if not X.size:
        return xp.zeros(bins, xp.int64)
    # as float64 bins of integers would not be exact beyond 2^53
    x = X.reshape(-1).astype(xp.float32 if X.dtype.itemsize == 2 and X.dtype.kind not in "iu" else X.dtype, copy=False)
    low, high = (x.min().item(), x.max().item()) if min == max == 0 else (min, max)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InvalidArgumentError(
            f"op histogram: X (shape {list(X.shape)}) has values from {low} to {high}; expected finite ones, or a "
            "range by min and max"
        )
    if low == high:
        low, high = low - 1, high + 1
    x = x[(x >= low) & (x <= high)]
    if x.dtype.kind in "iu":
        places = (x.astype(xp.int64) - int(low)) * bins // (int(high) - int(low))
    else:
        kind = x.dtype.type
        places = ((x - kind(low)) * kind(bins) / (kind(high) - kind(low))).astype(xp.int64)
    return xp.bincount(xp.minimum(places, bins - 1), minlength=bins).astype(xp.int64, copy=False)
