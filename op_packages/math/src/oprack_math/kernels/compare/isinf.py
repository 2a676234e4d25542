"""Kernel of isinf."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL


@kernel("isinf", place=BOTH, dtypes=REAL)
def isinf(X: Array, *, xp: ArrayModule) -> Array:
    """Whether any element is infinite."""
    return xp.isinf(X).any().reshape(1)
