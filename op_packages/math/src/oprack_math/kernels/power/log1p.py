"""Kernels of log1p and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS
from oprack_math.kernels.power._family import as_float, same_dtype


@kernel("log1p", place=BOTH, dtypes=NUMBERS)
def log1p(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Natural logarithm of 1 + X."""
    x = as_float(X, xp)
    return xp.log1p(x, out=same_dtype(out, x))


@kernel("log1p_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def log1p_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / (1 + X)."""
    return Out_grad / conjugate(1 + X, xp)
