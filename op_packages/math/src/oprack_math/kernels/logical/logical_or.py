"""Kernel of logical_or."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import ALL_DTYPES

from oprack_math.kernels._sets import BOTH


@kernel("logical_or", place=BOTH, dtypes=ALL_DTYPES)
def logical_or(X, Y, *, xp):
    """X or Y."""
    return xp.logical_or(X, Y)
