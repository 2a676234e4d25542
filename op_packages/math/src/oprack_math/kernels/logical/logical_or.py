"""Kernel of logical_or."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import ALL_DTYPES

from oprack_math.kernels._sets import BOTH


@kernel("logical_or", place=BOTH, dtypes=ALL_DTYPES)
def logical_or(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """X or Y."""
    return xp.logical_or(X, Y)
