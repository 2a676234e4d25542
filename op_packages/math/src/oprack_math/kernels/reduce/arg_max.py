"""Kernel of arg_max."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.reduce._arg_extremum import position


@kernel("arg_max", place=BOTH, dtypes=REAL)
def arg_max(X: Array, *, axis: int, keepdims: bool, flatten: bool, dtype: int, xp: ArrayModule) -> Array:
    """Where the greatest element is."""
    return position(xp.argmax, X, -float("inf"), axis, keepdims, flatten, dtype, xp)
