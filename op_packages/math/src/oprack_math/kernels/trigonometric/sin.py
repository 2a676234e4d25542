"""Kernels of sin, with gradients to third order."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_math.kernels._numeric import conjugate
from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS
from oprack_math.kernels.trigonometric._family import given, sin_cos, triple


@kernel("sin", place=BOTH, dtypes=FLOATING)
def sin(X, *, out=None, xp):
    """Sine."""
    return xp.sin(X, out=out)


@kernel("sin_grad", place=BOTH, dtypes=FLOATING)
def sin_grad(X, Out_grad, *, xp):
    """Out@GRAD cos X."""
    return Out_grad * conjugate(xp.cos(X), xp)


@kernel("sin_double_grad", place=BOTH, dtypes=NUMBERS)
def sin_double_grad(X, grad_out, grad_x_grad, *, xp):
    """By X and by Out@GRAD."""
    s, c = sin_cos(conjugate(X, xp), xp)
    return -grad_out * grad_x_grad * s, grad_x_grad * c


@kernel("sin_triple_grad", place=BOTH, dtypes=NUMBERS)
def sin_triple_grad(grad_out_forward, grad_x_grad_forward, X, grad_out_grad_grad=None, grad_x_grad=None, *, xp):
    """By X, grad_out_forward and grad_x_grad_forward."""
    s, c = sin_cos(X, xp)
    a, b, d, e = given(grad_x_grad, X), given(grad_out_grad_grad, X), grad_out_forward, grad_x_grad_forward
    return triple("X_grad", -a * e * d * c - b * e * s, -a * e * s, b * c - a * d * s)
