"""Kernels of atanh and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("atanh", place=BOTH, dtypes=FLOATING)
def atanh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Inverse hyperbolic tangent."""
    return xp.arctanh(X, out=out)


@kernel("atanh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def atanh_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / (1 - X^2)."""
    x = conjugate(X, xp)
    return Out_grad / (1 - x * x)
