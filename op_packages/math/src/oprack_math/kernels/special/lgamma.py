"""Kernels of lgamma and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._gamma import digamma_of, lgamma_of


@kernel("lgamma", place=BOTH, dtypes=REAL_FLOATS)
def lgamma(X: Array, *, xp: ArrayModule) -> Array:
    """Logarithm of the size of the gamma function."""
    return lgamma_of(X, xp)


@kernel("lgamma_grad", place=BOTH, dtypes=REAL_FLOATS)
def lgamma_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD psi(X)."""
    return Out_grad * digamma_of(X, xp)
