"""Kernels of elementwise_sub, with gradients to second order."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_math.kernels._broadcast import align, broadcasting, sum_to, usable
from oprack_math.kernels._sets import BOTH, NUMBERS
from oprack_math.kernels.elementwise._family import combine_second


@kernel("elementwise_sub", place=BOTH, dtypes=NUMBERS, specialize=broadcasting("subtract"))
def elementwise_sub(X, Y, *, axis, out=None, xp):
    """X - Y."""
    x, y = align(X, Y, axis, "elementwise_sub")
    return xp.subtract(x, y, out=usable(out, x, y))


@kernel("elementwise_sub_grad", place=BOTH, dtypes=NUMBERS, view=True)
def elementwise_sub_grad(Out_grad, X, Y, *, axis, ctx, xp):
    """Out@GRAD and its negative; X@GRAD is a view of it where X was not broadcast."""
    x, y = align(X, Y, axis, "elementwise_sub_grad")
    dx = sum_to(Out_grad, x, X) if ctx.wants("X@GRAD") else None
    return dx, xp.negative(sum_to(Out_grad, y, Y)) if ctx.wants("Y@GRAD") else None


@kernel("elementwise_sub_grad_grad", place=BOTH, dtypes=NUMBERS)
def elementwise_sub_grad_grad(Y, DOut, DDX=None, DDY=None, *, axis, xp):
    """DDX - DDY in the shape of DOut."""
    return combine_second(DDX, DDY, DOut, Y, axis, xp, xp.subtract)
