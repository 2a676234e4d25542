"""Kernels of cosh and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("cosh", place=BOTH, dtypes=FLOATING)
def cosh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Hyperbolic cosine."""
    return xp.cosh(X, out=out)


@kernel("cosh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def cosh_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD sinh X."""
    return Out_grad * conjugate(xp.sinh(X), xp)
