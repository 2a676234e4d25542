"""Kernels of tan and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("tan", place=BOTH, dtypes=FLOATING)
def tan(X: Any, *, out: Any = None, xp: Any) -> Any:
    """Tangent."""
    return xp.tan(X, out=out)


@kernel("tan_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def tan_grad(X: Any, Out_grad: Any, *, xp: Any) -> Any:
    """Out@GRAD (1 + tan(X)^2)."""
    t = conjugate(xp.tan(X), xp)
    return Out_grad * (1 + t * t)
