"""Kernel of logical_and."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import ALL_DTYPES

from oprack_math.kernels._sets import BOTH


@kernel("logical_and", place=BOTH, dtypes=ALL_DTYPES)
def logical_and(X, Y, *, xp):
    """X and Y."""
    return xp.logical_and(X, Y)
