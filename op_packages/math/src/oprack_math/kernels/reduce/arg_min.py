"""Kernel of arg_min."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.reduce._arg_extremum import position


@kernel("arg_min", place=BOTH, dtypes=REAL)
def arg_min(X: Array, *, axis: int, keepdims: bool, flatten: bool, dtype: int, xp: ArrayModule) -> Array:
    """Where the smallest element is."""
    return position(xp.argmin, X, float("inf"), axis, keepdims, flatten, dtype, xp)
