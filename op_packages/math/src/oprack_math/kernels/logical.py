"""Kernels of logic on truth values."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import ALL_DTYPES

from oprack_math.kernels._sets import BOTH


# logical_and ----------------------------------------------------------------------------------------------------------
@kernel("logical_and", place=BOTH, dtypes=ALL_DTYPES)
def logical_and(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """X and Y."""
    return xp.logical_and(X, Y)


# logical_not ----------------------------------------------------------------------------------------------------------
@kernel("logical_not", place=BOTH, dtypes=ALL_DTYPES)
def logical_not(X: Array, *, xp: ArrayModule) -> Array:
    """Not X."""
    return xp.logical_not(X)


# logical_or -----------------------------------------------------------------------------------------------------------
@kernel("logical_or", place=BOTH, dtypes=ALL_DTYPES)
def logical_or(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """X or Y."""
    return xp.logical_or(X, Y)


# logical_xor ----------------------------------------------------------------------------------------------------------
@kernel("logical_xor", place=BOTH, dtypes=ALL_DTYPES)
def logical_xor(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """X or Y, but not both."""
    return xp.logical_xor(X, Y)
