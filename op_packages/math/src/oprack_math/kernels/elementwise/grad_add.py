"""Kernel of grad_add."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._broadcast import align, broadcasting
from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("grad_add", place=BOTH, dtypes=NUMBERS, specialize=broadcasting("add"))
def grad_add(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X + Y."""
    return xp.add(*align(X, Y, axis, "grad_add"))
