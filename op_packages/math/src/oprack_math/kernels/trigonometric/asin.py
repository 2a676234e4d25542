"""Kernels of asin and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("asin", place=BOTH, dtypes=FLOATING)
def asin(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Arc sine."""
    return xp.arcsin(X, out=out)


@kernel("asin_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def asin_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / sqrt(1 - X^2)."""
    x = conjugate(X, xp)
    return Out_grad / xp.sqrt(1 - x * x)
