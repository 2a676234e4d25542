"""Kernels of cummax and of its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import kernel

from oprack_math.kernels._sets import REAL
from oprack_math.kernels.reduce._running import add_at, running_extremum


@kernel("cummax", dtypes=REAL)
def cummax(x: Any, *, axis: int, dtype: int) -> Any:
    """Running maximum and its places."""
    return running_extremum(x, np.maximum, axis, dtype)


@kernel("cummax_grad", dtypes=REAL)
def cummax_grad(x: Any, indices: Any, out_grad: Any, *, axis: int) -> Any:
    """out@GRAD where the maxima come from."""
    return add_at(x, indices, out_grad, axis)
