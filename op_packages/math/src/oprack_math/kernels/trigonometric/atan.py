"""Kernels of atan and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("atan", place=BOTH, dtypes=FLOATING)
def atan(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Arc tangent."""
    return xp.arctan(X, out=out)


@kernel("atan_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def atan_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / (1 + X^2)."""
    x = conjugate(X, xp)
    return Out_grad / (1 + x * x)
