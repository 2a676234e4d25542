"""Kernel of greater_than."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._broadcast import align
from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.compare._family import COMPARABLE


@kernel("greater_than", place=BOTH, dtypes=COMPARABLE)
def greater_than(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X > Y."""
    return xp.greater(*align(X, Y, axis, "greater_than"))
