"""Kernels of asinh and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("asinh", place=BOTH, dtypes=FLOATING)
def asinh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Inverse hyperbolic sine."""
    return xp.arcsinh(X, out=out)


@kernel("asinh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def asinh_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / sqrt(1 + X^2)."""
    x = conjugate(X, xp)
    return Out_grad / xp.sqrt(1 + x * x)
