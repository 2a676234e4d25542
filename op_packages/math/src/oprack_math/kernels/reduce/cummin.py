"""Kernels of cummin and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel

from oprack_math.kernels._sets import REAL
from oprack_math.kernels.reduce._running import add_at, running_extremum


@kernel("cummin", dtypes=REAL)
def cummin(x: Array, *, axis: int, dtype: int) -> tuple[Array, Array]:
    """Running minimum and its places."""
    return running_extremum(x, np.minimum, axis, dtype)


@kernel("cummin_grad", dtypes=REAL)
def cummin_grad(x: Array, indices: Array, out_grad: Array, *, axis: int) -> Array:
    """out@GRAD where the minima come from."""
    return add_at(x, indices, out_grad, axis)
