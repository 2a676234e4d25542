"""Kernels of cos, with gradients to third order."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate
from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS
from oprack_math.kernels.trigonometric._family import given, sin_cos, triple


@kernel("cos", place=BOTH, dtypes=FLOATING)
def cos(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Cosine."""
    return xp.cos(X, out=out)


@kernel("cos_grad", place=BOTH, dtypes=FLOATING)
def cos_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """-Out@GRAD sin X."""
    return -Out_grad * conjugate(xp.sin(X), xp)


@kernel("cos_double_grad", place=BOTH, dtypes=NUMBERS)
def cos_double_grad(X: Array, grad_out: Array, grad_x_grad: Array, *, xp: ArrayModule) -> tuple[Array, Array]:
    """By X and by Out@GRAD."""
    s, c = sin_cos(conjugate(X, xp), xp)
    return -grad_out * grad_x_grad * c, -grad_x_grad * s


@kernel("cos_triple_grad", place=BOTH, dtypes=NUMBERS)
def cos_triple_grad(
    grad_out_forward: Array,
    grad_x_grad_forward: Array,
    X: Array,
    grad_out_grad_grad: Array | None = None,
    grad_x_grad: Array | None = None,
    *,
    xp: ArrayModule,
) -> dict[str, Array]:
    """By X, grad_out_forward and grad_x_grad_forward."""
    s, c = sin_cos(X, xp)
    a, b, d, e = given(grad_x_grad, X), given(grad_out_grad_grad, X), grad_out_forward, grad_x_grad_forward
    return triple("X_grad", a * e * d * s - b * e * c, -a * e * c, -b * s - a * d * c)
