"""Kernel of elementwise_floordiv."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._broadcast import align
from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.elementwise._family import require_divisor


@kernel("elementwise_floordiv", place=BOTH, dtypes=REAL)
def elementwise_floordiv(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """Floor of X / Y."""
    require_divisor(Y, "elementwise_floordiv", xp)
    return xp.floor_divide(*align(X, Y, axis, "elementwise_floordiv"))
