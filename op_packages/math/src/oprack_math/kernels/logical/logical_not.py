"""Kernel of logical_not."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import ALL_DTYPES

from oprack_math.kernels._sets import BOTH


@kernel("logical_not", place=BOTH, dtypes=ALL_DTYPES)
def logical_not(X: Array, *, xp: ArrayModule) -> Array:
    """Not X."""
    return xp.logical_not(X)
