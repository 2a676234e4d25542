"""Kernels of log, with gradients to second order."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._numeric import conjugate
from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS, REAL_FLOATS
from oprack_math.kernels.power._family import as_float, same_dtype


@kernel("log", place=BOTH, dtypes=NUMBERS)
def log(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Natural logarithm."""
    x = as_float(X, xp)
    return xp.log(x, out=same_dtype(out, x))


@kernel("log_grad", place=BOTH, dtypes=FLOATING)
def log_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / X."""
    return Out_grad / conjugate(X, xp)


@kernel("log_grad_grad", place=BOTH, dtypes=REAL_FLOATS)
def log_grad_grad(
    X: Array, grad_out: Array, grad_x_grad: Array, *, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """By X and by Out@GRAD."""
    dx = -grad_out * grad_x_grad / (X * X) if ctx.wants("X@GRAD") else None
    return dx, grad_x_grad / X if ctx.wants("grad_out@GRAD") else None
