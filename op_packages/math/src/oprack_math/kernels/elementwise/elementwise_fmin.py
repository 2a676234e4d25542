"""Kernels of elementwise_fmin and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.elementwise._family import route_to_numbers


@kernel("elementwise_fmin", place=BOTH, dtypes=REAL)
def elementwise_fmin(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """The smaller one; a number wins over NaN."""
    return xp.fmin(X, Y)


@kernel("elementwise_fmin_grad", place=BOTH, dtypes=REAL)
def elementwise_fmin_grad(
    Out_grad: Array, X: Array, Y: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array]:
    """Out@GRAD goes to X where it is the smaller one or both are equal, else to Y."""
    return route_to_numbers(Out_grad, xp.less_equal, X, Y, ctx, xp)
