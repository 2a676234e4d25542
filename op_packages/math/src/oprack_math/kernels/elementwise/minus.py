"""Kernel of minus."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("minus", place=BOTH, dtypes=NUMBERS)
def minus(X: Array, Y: Array) -> Array:
    """X - Y."""
    return X - Y
