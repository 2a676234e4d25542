"""Kernels of tanh, with gradients to third order."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate
from oprack_math.kernels._sets import BOTH, FLOATING
from oprack_math.kernels.trigonometric._family import given, triple


@kernel("tanh", place=BOTH, dtypes=FLOATING)
def tanh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Hyperbolic tangent."""
    return xp.tanh(X, out=out)


@kernel("tanh_grad", place=BOTH, dtypes=FLOATING)
def tanh_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD (1 - Out^2)."""
    out = conjugate(Out, xp)
    return Out_grad * (Out.dtype.type(1) - out * out)


@kernel("tanh_grad_grad", place=BOTH, dtypes=FLOATING)
def tanh_grad_grad(Out: Array, grad_out: Array, grad_x_grad: Array, *, xp: ArrayModule) -> tuple[Array, Array]:
    """By Out and by Out@GRAD."""
    out, one = conjugate(Out, xp), Out.dtype.type(1)
    return Out.dtype.type(-2) * out * grad_out * grad_x_grad, grad_x_grad * (one - out * out)


@kernel("tanh_triple_grad", place=BOTH, dtypes=FLOATING)
def tanh_triple_grad(
    grad_out_forward: Array,
    grad_x_grad_forward: Array,
    Out: Array,
    grad_out_grad_grad: Array | None = None,
    grad_out_new_grad: Array | None = None,
    *,
    xp: ArrayModule,
) -> dict[str, Array]:
    """By Out, grad_out_forward and grad_x_grad_forward."""
    a, b, d, e = given(grad_out_new_grad, Out), given(grad_out_grad_grad, Out), grad_out_forward, grad_x_grad_forward
    one, two = Out.dtype.type(1), Out.dtype.type(2)
    by_e = b * (one - Out * Out) - two * a * d * Out
    return triple("Out_grad", -two * e * (a * d + b * Out), -two * a * e * Out, by_e)
