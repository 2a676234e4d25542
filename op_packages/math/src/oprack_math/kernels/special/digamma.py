"""Kernels of digamma and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._gamma import digamma_of, polygamma_of


@kernel("digamma", place=BOTH, dtypes=REAL_FLOATS)
def digamma(X: Array, *, xp: ArrayModule) -> Array:
    """psi(X)."""
    return digamma_of(X, xp)


@kernel("digamma_grad", place=BOTH, dtypes=REAL_FLOATS)
def digamma_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD psi'(X)."""
    return Out_grad * polygamma_of(1, X, xp)
