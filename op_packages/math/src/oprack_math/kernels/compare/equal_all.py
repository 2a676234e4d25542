"""Kernel of equal_all."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.compare._family import COMPARABLE, equal_within_tolerance


@kernel("equal_all", place=BOTH, dtypes=COMPARABLE)
def equal_all(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """One shape and equal elements."""
    return equal_within_tolerance(X, Y, xp).all() if X.shape == Y.shape else xp.zeros((), bool)
