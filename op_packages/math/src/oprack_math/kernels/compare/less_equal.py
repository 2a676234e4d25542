"""Kernel of less_equal."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._broadcast import align
from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.compare._family import COMPARABLE


@kernel("less_equal", place=BOTH, dtypes=COMPARABLE)
def less_equal(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X <= Y."""
    return xp.less_equal(*align(X, Y, axis, "less_equal"))
