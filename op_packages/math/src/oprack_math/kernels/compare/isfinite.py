"""Kernel of isfinite."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL


@kernel("isfinite", place=BOTH, dtypes=REAL)
def isfinite(X: Array, *, xp: ArrayModule) -> Array:
    """Whether all elements are finite."""
    return xp.isfinite(X).all().reshape(1)
