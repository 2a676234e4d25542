"""Kernels of sin, cos and tanh, and of their gradients to third order."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import COMPLEX, FLOATS, HALF_FLOATS, INTEGERS

from oprack_math.kernels._broadcast import BOTH, conjugate

FLOATING = FLOATS | HALF_FLOATS | COMPLEX
NUMBERS = FLOATING | INTEGERS


@kernel("sin", place=BOTH, dtypes=FLOATING)
def sin(X, *, out=None, xp):
    """Sine."""
    return xp.sin(X, out=out)


@kernel("cos", place=BOTH, dtypes=FLOATING)
def cos(X, *, out=None, xp):
    """Cosine."""
    return xp.cos(X, out=out)


@kernel("tanh", place=BOTH, dtypes=FLOATING)
def tanh(X, *, out=None, xp):
    """Hyperbolic tangent."""
    return xp.tanh(X, out=out)


@kernel("sin_grad", place=BOTH, dtypes=FLOATING)
def sin_grad(X, Out_grad, *, xp):
    """Out@GRAD cos X."""
    return Out_grad * conjugate(xp.cos(X), xp)


@kernel("cos_grad", place=BOTH, dtypes=FLOATING)
def cos_grad(X, Out_grad, *, xp):
    """-Out@GRAD sin X."""
    return -Out_grad * conjugate(xp.sin(X), xp)


@kernel("tanh_grad", place=BOTH, dtypes=FLOATING)
def tanh_grad(Out, Out_grad, *, xp):
    """Out@GRAD (1 - Out^2)."""
    out = conjugate(Out, xp)
    return Out_grad * (Out.dtype.type(1) - out * out)


def _sin_cos(x, xp):
    """Both at x, in the dtype of x."""
    return xp.sin(x).astype(x.dtype, copy=False), xp.cos(x).astype(x.dtype, copy=False)


@kernel("sin_double_grad", place=BOTH, dtypes=NUMBERS)
def sin_double_grad(X, grad_out, grad_x_grad, *, xp):
    """By X and by Out@GRAD."""
    s, c = _sin_cos(conjugate(X, xp), xp)
    return -grad_out * grad_x_grad * s, grad_x_grad * c


@kernel("cos_double_grad", place=BOTH, dtypes=NUMBERS)
def cos_double_grad(X, grad_out, grad_x_grad, *, xp):
    """By X and by Out@GRAD."""
    s, c = _sin_cos(conjugate(X, xp), xp)
    return -grad_out * grad_x_grad * c, -grad_x_grad * s


@kernel("tanh_grad_grad", place=BOTH, dtypes=FLOATING)
def tanh_grad_grad(Out, grad_out, grad_x_grad, *, xp):
    """By Out and by Out@GRAD."""
    out, one = conjugate(Out, xp), Out.dtype.type(1)
    return Out.dtype.type(-2) * out * grad_out * grad_x_grad, grad_x_grad * (one - out * out)


@kernel("sin_triple_grad", place=BOTH, dtypes=NUMBERS)
def sin_triple_grad(grad_out_forward, grad_x_grad_forward, X, grad_out_grad_grad=None, grad_x_grad=None, *, xp):
    """By X, grad_out_forward and grad_x_grad_forward."""
    s, c = _sin_cos(X, xp)
    a, b, d, e = _given(grad_x_grad, X), _given(grad_out_grad_grad, X), grad_out_forward, grad_x_grad_forward
    return _triple("X_grad", -a * e * d * c - b * e * s, -a * e * s, b * c - a * d * s)


@kernel("cos_triple_grad", place=BOTH, dtypes=NUMBERS)
def cos_triple_grad(grad_out_forward, grad_x_grad_forward, X, grad_out_grad_grad=None, grad_x_grad=None, *, xp):
    """By X, grad_out_forward and grad_x_grad_forward."""
    s, c = _sin_cos(X, xp)
    a, b, d, e = _given(grad_x_grad, X), _given(grad_out_grad_grad, X), grad_out_forward, grad_x_grad_forward
    return _triple("X_grad", a * e * d * s - b * e * c, -a * e * c, -b * s - a * d * c)


@kernel("tanh_triple_grad", place=BOTH, dtypes=FLOATING)
def tanh_triple_grad(
    grad_out_forward, grad_x_grad_forward, Out, grad_out_grad_grad=None, grad_out_new_grad=None, *, xp
):
    """By Out, grad_out_forward and grad_x_grad_forward."""
    a, b, d, e = _given(grad_out_new_grad, Out), _given(grad_out_grad_grad, Out), grad_out_forward, grad_x_grad_forward
    one, two = Out.dtype.type(1), Out.dtype.type(2)
    by_e = b * (one - Out * Out) - two * a * d * Out
    return _triple("Out_grad", -two * e * (a * d + b * Out), -two * a * e * Out, by_e)


def _given(value, like):
    """An absent gradient counts as zero."""
    return like.dtype.type(0) if value is None else value


def _triple(slot, first, by_grad_out, by_grad_x_grad):
    return {slot: first, "grad_out_forward@GRAD": by_grad_out, "grad_x_grad_forward@GRAD": by_grad_x_grad}
