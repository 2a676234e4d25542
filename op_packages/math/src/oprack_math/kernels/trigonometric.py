"""Kernels of trigonometric and hyperbolic functions and of their inverses."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS, REAL, REAL_FLOATS


# shared ---------------------------------------------------------------------------------------------------------------
# What sin, cos and tanh share in their higher gradients.
def sin_cos(x: Array, xp: ArrayModule) -> tuple[Array, Array]:
    """Both at x, in the dtype of x."""
    return xp.sin(x).astype(x.dtype, copy=False), xp.cos(x).astype(x.dtype, copy=False)


def given(value: Array | None, like: Array) -> Array:
    """An absent gradient counts as zero."""
    return like.dtype.type(0) if value is None else value


def triple(slot: str, first: Array, by_grad_out: Array, by_grad_x_grad: Array) -> dict[str, Array]:
    """The outputs of a triple gradient by slot."""
    return {slot: first, "grad_out_forward@GRAD": by_grad_out, "grad_x_grad_forward@GRAD": by_grad_x_grad}


# acos -----------------------------------------------------------------------------------------------------------------
@kernel("acos", place=BOTH, dtypes=FLOATING)
def acos(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Arc cosine."""
    return xp.arccos(X, out=out)


@kernel("acos_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def acos_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """-Out@GRAD / sqrt(1 - X^2)."""
    x = conjugate(X, xp)
    return -Out_grad / xp.sqrt(1 - x * x)


# acosh ----------------------------------------------------------------------------------------------------------------
@kernel("acosh", place=BOTH, dtypes=FLOATING)
def acosh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Inverse hyperbolic cosine."""
    return xp.arccosh(X, out=out)


@kernel("acosh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def acosh_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / sqrt(X^2 - 1); of complex numbers in two roots, for the sign of the principal branch."""
    x = conjugate(X, xp)
    root = xp.sqrt(x - 1) * xp.sqrt(x + 1) if x.dtype.kind == "c" else xp.sqrt(x * x - 1)
    return Out_grad / root


# asin -----------------------------------------------------------------------------------------------------------------
@kernel("asin", place=BOTH, dtypes=FLOATING)
def asin(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Arc sine."""
    return xp.arcsin(X, out=out)


@kernel("asin_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def asin_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / sqrt(1 - X^2)."""
    x = conjugate(X, xp)
    return Out_grad / xp.sqrt(1 - x * x)


# asinh ----------------------------------------------------------------------------------------------------------------
@kernel("asinh", place=BOTH, dtypes=FLOATING)
def asinh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Inverse hyperbolic sine."""
    return xp.arcsinh(X, out=out)


@kernel("asinh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def asinh_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / sqrt(1 + X^2)."""
    x = conjugate(X, xp)
    return Out_grad / xp.sqrt(1 + x * x)


# atan -----------------------------------------------------------------------------------------------------------------
@kernel("atan", place=BOTH, dtypes=FLOATING)
def atan(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Arc tangent."""
    return xp.arctan(X, out=out)


@kernel("atan_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def atan_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / (1 + X^2)."""
    x = conjugate(X, xp)
    return Out_grad / (1 + x * x)


# atan2 ----------------------------------------------------------------------------------------------------------------
@kernel("atan2", place=BOTH, dtypes=REAL)
def atan2(X1: Array, X2: Array, *, xp: ArrayModule) -> Array:
    """The angle of each point; of integers in float64."""
    if X1.dtype.kind in "iu":
        X1, X2 = X1.astype(xp.float64), X2.astype(xp.float64)
    return xp.arctan2(X1, X2)


@kernel("atan2_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def atan2_grad(X1: Array, X2: Array, Out_grad: Array, *, ctx: KernelContext) -> tuple[Array | None, Array | None]:
    """Out@GRAD times (X2, -X1) / (X1^2 + X2^2)."""
    x, y = align(X1, X2, -1)
    g = Out_grad / (x * x + y * y)
    return sum_to(g * y, x, X1) if ctx.wants("X1@GRAD") else None, (
        sum_to(-g * x, y, X2) if ctx.wants("X2@GRAD") else None
    )


# atanh ----------------------------------------------------------------------------------------------------------------
@kernel("atanh", place=BOTH, dtypes=FLOATING)
def atanh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Inverse hyperbolic tangent."""
    return xp.arctanh(X, out=out)


@kernel("atanh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def atanh_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / (1 - X^2)."""
    x = conjugate(X, xp)
    return Out_grad / (1 - x * x)


# cos ------------------------------------------------------------------------------------------------------------------
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


# cosh -----------------------------------------------------------------------------------------------------------------
@kernel("cosh", place=BOTH, dtypes=FLOATING)
def cosh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Hyperbolic cosine."""
    return xp.cosh(X, out=out)


@kernel("cosh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def cosh_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD sinh X."""
    return Out_grad * conjugate(xp.sinh(X), xp)


# sin ------------------------------------------------------------------------------------------------------------------
@kernel("sin", place=BOTH, dtypes=FLOATING)
def sin(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Sine."""
    return xp.sin(X, out=out)


@kernel("sin_grad", place=BOTH, dtypes=FLOATING)
def sin_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD cos X."""
    return Out_grad * conjugate(xp.cos(X), xp)


@kernel("sin_double_grad", place=BOTH, dtypes=NUMBERS)
def sin_double_grad(X: Array, grad_out: Array, grad_x_grad: Array, *, xp: ArrayModule) -> tuple[Array, Array]:
    """By X and by Out@GRAD."""
    s, c = sin_cos(conjugate(X, xp), xp)
    return -grad_out * grad_x_grad * s, grad_x_grad * c


@kernel("sin_triple_grad", place=BOTH, dtypes=NUMBERS)
def sin_triple_grad(
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
    return triple("X_grad", -a * e * d * c - b * e * s, -a * e * s, b * c - a * d * s)


# sinh -----------------------------------------------------------------------------------------------------------------
@kernel("sinh", place=BOTH, dtypes=FLOATING)
def sinh(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Hyperbolic sine."""
    return xp.sinh(X, out=out)


@kernel("sinh_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def sinh_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD cosh X."""
    return Out_grad * conjugate(xp.cosh(X), xp)


# tan ------------------------------------------------------------------------------------------------------------------
@kernel("tan", place=BOTH, dtypes=FLOATING)
def tan(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Tangent."""
    return xp.tan(X, out=out)


@kernel("tan_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def tan_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD (1 + tan(X)^2)."""
    t = conjugate(xp.tan(X), xp)
    return Out_grad * (1 + t * t)


# tanh -----------------------------------------------------------------------------------------------------------------
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
