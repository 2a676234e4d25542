"""Kernels of cummax and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel

from oprack_math.kernels._sets import REAL
from oprack_math.kernels.reduce._running import add_at, running_extremum


@kernel("cummax", dtypes=REAL)
def cummax(x: Array, *, axis: int, dtype: int) -> tuple[Array, Array]:
    """Running maximum and its places."""
    return running_extremum(x, np.maximum, axis, dtype)


@kernel("cummax_grad", dtypes=REAL)
def cummax_grad(x: Array, indices: Array, out_grad: Array, *, axis: int) -> Array:
    """out@GRAD where the maxima come from."""
    return add_at(x, indices, out_grad, axis)
