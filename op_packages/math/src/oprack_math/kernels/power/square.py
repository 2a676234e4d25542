"""Kernels of square, with gradients to second order."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import SelectedRows

from oprack_math.kernels._numeric import conjugate
from oprack_math.kernels._rows import with_values
from oprack_math.kernels._sets import BOTH, NUMBERS, REAL


@kernel("square", place=BOTH, dtypes=NUMBERS)
def square(X: Array, *, xp: ArrayModule) -> Array:
    """X times X."""
    return xp.multiply(X, X)


@kernel("square", place=BOTH, dtypes=NUMBERS)
def square_rows(X: SelectedRows, *, xp: ArrayModule) -> SelectedRows:
    """Every value times itself."""
    return with_values(X, xp.multiply(X.value, X.value))


@kernel("square_grad", place=BOTH, dtypes=NUMBERS)
def square_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """2 X Out@GRAD."""
    return Out_grad * conjugate(X, xp) * X.dtype.type(2)


@kernel("square_grad_grad", place=BOTH, dtypes=REAL)
def square_grad_grad(
    X: Array, grad_out: Array, grad_x_grad: Array, *, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """By X and by Out@GRAD."""
    two = X.dtype.type(2)
    dx = two * grad_out * grad_x_grad if ctx.wants("X@GRAD") else None
    return dx, two * X * grad_x_grad if ctx.wants("grad_out@GRAD") else None
