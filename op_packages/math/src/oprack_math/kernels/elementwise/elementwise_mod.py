"""Kernel of elementwise_mod."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._broadcast import align, usable
from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.elementwise._family import require_divisor


@kernel("elementwise_mod", place=BOTH, dtypes=REAL)
def elementwise_mod(X: Array, Y: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array:
    """Remainder with the sign of Y."""
    require_divisor(Y, "elementwise_mod", xp)
    x, y = align(X, Y, axis, "elementwise_mod")
    return xp.remainder(x, y, out=usable(out, x, y))
