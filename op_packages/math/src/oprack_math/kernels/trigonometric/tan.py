"""Kernels of tan and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("tan", place=BOTH, dtypes=FLOATING)
def tan(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Tangent."""
    return xp.tan(X, out=out)


@kernel("tan_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def tan_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD (1 + tan(X)^2)."""
    t = conjugate(xp.tan(X), xp)
    return Out_grad * (1 + t * t)
