"""Kernels of cosh and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("cosh", place=BOTH, dtypes=FLOATING)
def cosh(X: Any, *, out: Any = None, xp: Any) -> Any:
    """Hyperbolic cosine."""
    return xp.cosh(X, out=out)


@kernel("cosh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def cosh_grad(X: Any, Out_grad: Any, *, xp: Any) -> Any:
    """Out@GRAD sinh X."""
    return Out_grad * conjugate(xp.sinh(X), xp)
