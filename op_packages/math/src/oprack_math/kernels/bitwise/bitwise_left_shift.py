"""Kernel of bitwise_left_shift."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import INTEGERS

from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.bitwise._family import bits_of


@kernel("bitwise_left_shift", place=BOTH, dtypes=INTEGERS)
def bitwise_left_shift(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """Bit by bit; by as many bits as there are, or more, 0."""
    return xp.where(Y < bits_of(X), xp.left_shift(X, Y % bits_of(X)), X.dtype.type(0))
