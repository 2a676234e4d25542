"""Kernel of logical_and."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import ALL_DTYPES

from oprack_math.kernels._sets import BOTH


@kernel("logical_and", place=BOTH, dtypes=ALL_DTYPES)
def logical_and(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """X and Y."""
    return xp.logical_and(X, Y)
