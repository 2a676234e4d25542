"""Kernels of lgamma and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._gamma import digamma_of, lgamma_of


@kernel("lgamma", place=BOTH, dtypes=REAL_FLOATS)
def lgamma(X: Any, *, xp: Any) -> Any:
    """Logarithm of the size of the gamma function."""
    return lgamma_of(X, xp)


@kernel("lgamma_grad", place=BOTH, dtypes=REAL_FLOATS)
def lgamma_grad(X: Any, Out_grad: Any, *, xp: Any) -> Any:
    """Out@GRAD psi(X)."""
    return Out_grad * digamma_of(X, xp)
