"""Kernel of less_than."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._broadcast import align
from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.compare._family import COMPARABLE


@kernel("less_than", place=BOTH, dtypes=COMPARABLE)
def less_than(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X < Y."""
    return xp.less(*align(X, Y, axis, "less_than"))
