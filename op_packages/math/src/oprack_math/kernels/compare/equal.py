"""Kernel of equal."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX

from oprack_math.kernels._broadcast import align
from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.compare._family import COMPARABLE, equal_within_tolerance


@kernel("equal", place=BOTH, dtypes=COMPARABLE | COMPLEX)
def equal(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X equals Y, within 1e-8 for float32 and float64."""
    return equal_within_tolerance(*align(X, Y, axis, "equal"), xp)
