"""Kernels of elementwise_fmax and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.elementwise._family import route_to_numbers


@kernel("elementwise_fmax", place=BOTH, dtypes=REAL)
def elementwise_fmax(X: Any, Y: Any, *, xp: Any) -> Any:
    """The greater one; a number wins over NaN."""
    return xp.fmax(X, Y)


@kernel("elementwise_fmax_grad", place=BOTH, dtypes=REAL)
def elementwise_fmax_grad(Out_grad: Any, X: Any, Y: Any, *, ctx: Any, xp: Any) -> Any:
    """Out@GRAD goes to X where it is the greater one or both are equal, else to Y."""
    return route_to_numbers(Out_grad, xp.greater_equal, X, Y, ctx, xp)
