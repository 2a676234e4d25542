"""Kernels of sinh and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("sinh", place=BOTH, dtypes=FLOATING)
def sinh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Hyperbolic sine."""
    return xp.sinh(X, out=out)


@kernel("sinh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def sinh_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD cosh X."""
    return Out_grad * conjugate(xp.cosh(X), xp)
