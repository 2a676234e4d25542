"""Kernels of elementwise_max and of its gradient."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_math.kernels._broadcast import align
from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.elementwise._family import route_gradient


@kernel("elementwise_max", place=BOTH, dtypes=REAL)
def elementwise_max(X, Y, *, axis, xp):
    """X where it is greater, else Y."""
    x, y = align(X, Y, axis, "elementwise_max")
    return xp.where(x > y, x, y)


@kernel("elementwise_max_grad", place=BOTH, dtypes=REAL)
def elementwise_max_grad(Out_grad, X, Y, *, axis, ctx, xp):
    """Out@GRAD goes to X where it is greater, else to Y."""
    x, y = align(X, Y, axis, "elementwise_max_grad")
    return route_gradient(Out_grad, xp.greater, xp.less_equal, X, Y, x, y, ctx, xp)
