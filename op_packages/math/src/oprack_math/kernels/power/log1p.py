"""Kernels of log1p and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._sets import BOTH, REAL, REAL_FLOATS
from oprack_math.kernels.power._family import as_float, same_dtype


@kernel("log1p", place=BOTH, dtypes=REAL)
def log1p(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Natural logarithm of 1 + X."""
    x = as_float(X, xp)
    return xp.log1p(x, out=same_dtype(out, x))


@kernel("log1p_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def log1p_grad(X: Array, Out_grad: Array) -> Array:
    """Out@GRAD / (1 + X)."""
    return Out_grad / (1 + X)
