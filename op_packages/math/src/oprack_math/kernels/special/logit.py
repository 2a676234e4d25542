"""Kernels of logit and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("logit", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def logit(X: Array, *, eps: float, xp: ArrayModule) -> Array:
    """ln(z / (1 - z)) of X cut to [eps, 1 - eps]."""
    low, high = X.dtype.type(eps), X.dtype.type(1 - eps)
    z = xp.clip(X, low, high) if eps else X
    return xp.log(z / (1 - z))


@kernel("logit_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def logit_grad(X: Array, Out_grad: Array, *, eps: float, xp: ArrayModule) -> Array:
    """Out@GRAD / (X (1 - X)), and 0 beyond eps and 1 - eps."""
    low, high = X.dtype.type(eps), X.dtype.type(1 - eps)
    return xp.where((X < low) | (X > high), X.dtype.type(0), Out_grad / (X * (1 - X)))
