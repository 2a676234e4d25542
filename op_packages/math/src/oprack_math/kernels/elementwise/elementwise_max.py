"""Kernels of elementwise_max and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._broadcast import align
from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.elementwise._family import route_gradient


@kernel("elementwise_max", place=BOTH, dtypes=REAL)
def elementwise_max(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X where it is greater, else Y."""
    x, y = align(X, Y, axis, "elementwise_max")
    return xp.where(x > y, x, y)


@kernel("elementwise_max_grad", place=BOTH, dtypes=REAL)
def elementwise_max_grad(
    Out_grad: Array, X: Array, Y: Array, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD goes to X where it is greater, else to Y."""
    x, y = align(X, Y, axis, "elementwise_max_grad")
    return route_gradient(Out_grad, xp.greater, xp.less_equal, X, Y, x, y, ctx, xp)
