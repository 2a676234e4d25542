"""Kernel of not_equal."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX

from oprack_math.kernels._broadcast import align
from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.compare._family import COMPARABLE, equal_within_tolerance


@kernel("not_equal", place=BOTH, dtypes=COMPARABLE | COMPLEX)
def not_equal(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """The contrary of equal."""
    return ~equal_within_tolerance(*align(X, Y, axis, "not_equal"), xp)
