"""Kernels of acosh and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("acosh", place=BOTH, dtypes=FLOATING)
def acosh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Inverse hyperbolic cosine."""
    return xp.arccosh(X, out=out)


@kernel("acosh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def acosh_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / sqrt(X^2 - 1); of complex numbers in two roots, for the sign of the principal branch."""
    x = conjugate(X, xp)
    root = xp.sqrt(x - 1) * xp.sqrt(x + 1) if x.dtype.kind == "c" else xp.sqrt(x * x - 1)
    return Out_grad / root
