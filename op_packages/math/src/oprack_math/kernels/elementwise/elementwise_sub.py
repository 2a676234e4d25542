"""Kernels of elementwise_sub, with gradients to second order."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_math.kernels._broadcast import align, broadcasting, sum_to, usable
from oprack_math.kernels._sets import BOTH, NUMBERS
from oprack_math.kernels.elementwise._family import combine_second


@kernel("elementwise_sub", place=BOTH, dtypes=NUMBERS, specialize=broadcasting("subtract"))
def elementwise_sub(X: Array, Y: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array:
    """X - Y."""
    x, y = align(X, Y, axis, "elementwise_sub")
    return xp.subtract(x, y, out=usable(out, x, y))


@kernel("elementwise_sub_grad", place=BOTH, dtypes=NUMBERS, view=True)
def elementwise_sub_grad(
    Out_grad: Array, X: ShapeOnly, Y: ShapeOnly, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD and its negative; X@GRAD is a view of it where X was not broadcast."""
    x, y = align(X, Y, axis, "elementwise_sub_grad")
    dx = sum_to(Out_grad, x, X) if ctx.wants("X@GRAD") else None
    return dx, xp.negative(sum_to(Out_grad, y, Y)) if ctx.wants("Y@GRAD") else None


@kernel("elementwise_sub_grad_grad", place=BOTH, dtypes=NUMBERS)
def elementwise_sub_grad_grad(
    Y: ShapeOnly, DOut: ShapeOnly, DDX: Array | None = None, DDY: Array | None = None, *, axis: int, xp: ArrayModule
) -> Array:
    """DDX - DDY in the shape of DOut."""
    return combine_second(DDX, DDY, DOut, Y, axis, xp, xp.subtract)
