"""Kernels of elementwise_fmin and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.elementwise._family import route_to_numbers


@kernel("elementwise_fmin", place=BOTH, dtypes=REAL)
def elementwise_fmin(X: Any, Y: Any, *, xp: Any) -> Any:
    """The smaller one; a number wins over NaN."""
    return xp.fmin(X, Y)


@kernel("elementwise_fmin_grad", place=BOTH, dtypes=REAL)
def elementwise_fmin_grad(Out_grad: Any, X: Any, Y: Any, *, ctx: Any, xp: Any) -> Any:
    """Out@GRAD goes to X where it is the smaller one or both are equal, else to Y."""
    return route_to_numbers(Out_grad, xp.less_equal, X, Y, ctx, xp)
