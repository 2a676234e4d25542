"""Kernel of bitwise_not."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import BOOL, INTEGERS

from oprack_math.kernels._sets import BOTH


@kernel("bitwise_not", place=BOTH, dtypes=INTEGERS | BOOL)
def bitwise_not(X: Array, *, xp: ArrayModule) -> Array:
    """Bit by bit."""
    return xp.bitwise_not(X)
