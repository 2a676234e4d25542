"""Kernels of logical ops."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import ALL_DTYPES

from oprack_math.kernels._broadcast import BOTH


@kernel("logical_and", place=BOTH, dtypes=ALL_DTYPES)
def logical_and(X, Y, *, xp):
    """X and Y."""
    return xp.logical_and(X, Y)


@kernel("logical_or", place=BOTH, dtypes=ALL_DTYPES)
def logical_or(X, Y, *, xp):
    """X or Y."""
    return xp.logical_or(X, Y)


@kernel("logical_xor", place=BOTH, dtypes=ALL_DTYPES)
def logical_xor(X, Y, *, xp):
    """X or Y, but not both."""
    return xp.logical_xor(X, Y)


@kernel("logical_not", place=BOTH, dtypes=ALL_DTYPES)
def logical_not(X, *, xp):
    """Not X."""
    return xp.logical_not(X)
