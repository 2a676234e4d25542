"""Kernels of digamma and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._gamma import digamma_of, polygamma_of


@kernel("digamma", place=BOTH, dtypes=REAL_FLOATS)
def digamma(X: Any, *, xp: Any) -> Any:
    """psi(X)."""
    return digamma_of(X, xp)


@kernel("digamma_grad", place=BOTH, dtypes=REAL_FLOATS)
def digamma_grad(X: Any, Out_grad: Any, *, xp: Any) -> Any:
    """Out@GRAD psi'(X)."""
    return Out_grad * polygamma_of(1, X, xp)
