"""Kernels of sinh and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("sinh", place=BOTH, dtypes=FLOATING)
def sinh(X: Any, *, out: Any = None, xp: Any) -> Any:
    """Hyperbolic sine."""
    return xp.sinh(X, out=out)


@kernel("sinh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def sinh_grad(X: Any, Out_grad: Any, *, xp: Any) -> Any:
    """Out@GRAD cosh X."""
    return Out_grad * conjugate(xp.cosh(X), xp)
