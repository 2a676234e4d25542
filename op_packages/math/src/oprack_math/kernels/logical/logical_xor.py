"""Kernel of logical_xor."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import ALL_DTYPES

from oprack_math.kernels._sets import BOTH


@kernel("logical_xor", place=BOTH, dtypes=ALL_DTYPES)
def logical_xor(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """X or Y, but not both."""
    return xp.logical_xor(X, Y)
