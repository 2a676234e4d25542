"""Kernels of elementwise_heaviside and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._sets import BOTH, REAL


@kernel("elementwise_heaviside", place=BOTH, dtypes=REAL)
def elementwise_heaviside(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """The step function, Y at the step."""
    return xp.where(X == 0, Y, (X > 0).astype(X.dtype))


@kernel("elementwise_heaviside_grad", place=BOTH, dtypes=REAL)
def elementwise_heaviside_grad(
    Out_grad: Array, X: Array, Y: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Zeros for X, and for Y what went through at the step."""
    x, y = align(X, Y, -1)
    dy = sum_to(xp.where(x == 0, Out_grad, xp.zeros((), Out_grad.dtype)), y, Y) if ctx.wants("Y@GRAD") else None
    return xp.zeros_like(X) if ctx.wants("X@GRAD") else None, dy
