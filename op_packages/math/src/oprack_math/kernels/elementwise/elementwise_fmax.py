"""Kernels of elementwise_fmax and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.elementwise._family import route_to_numbers


@kernel("elementwise_fmax", place=BOTH, dtypes=REAL)
def elementwise_fmax(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """The greater one; a number wins over NaN."""
    return xp.fmax(X, Y)


@kernel("elementwise_fmax_grad", place=BOTH, dtypes=REAL)
def elementwise_fmax_grad(
    Out_grad: Array, X: Array, Y: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array]:
    """Out@GRAD goes to X where it is the greater one or both are equal, else to Y."""
    return route_to_numbers(Out_grad, xp.greater_equal, X, Y, ctx, xp)
