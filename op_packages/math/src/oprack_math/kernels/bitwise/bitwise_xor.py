"""Kernel of bitwise_xor."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import BOOL, INTEGERS

from oprack_math.kernels._sets import BOTH


@kernel("bitwise_xor", place=BOTH, dtypes=INTEGERS | BOOL)
def bitwise_xor(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """Bit by bit."""
    return xp.bitwise_xor(X, Y)
