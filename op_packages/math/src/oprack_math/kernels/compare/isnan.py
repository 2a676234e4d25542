"""Kernel of isnan."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL


@kernel("isnan", place=BOTH, dtypes=REAL)
def isnan(X: Array, *, xp: ArrayModule) -> Array:
    """Whether any element is NaN."""
    return xp.isnan(X).any().reshape(1)
