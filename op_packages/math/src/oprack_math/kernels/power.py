"""Kernels of powers, roots, e to the power of X and logarithms."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import SelectedRows

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._rows import with_values
from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS, REAL, REAL_FLOATS


# shared ---------------------------------------------------------------------------------------------------------------
# What exp and log share: integers become float32.
def as_float(x: Array, xp: ArrayModule) -> Array:
    """Integers as float32."""
    return x.astype(xp.float32) if x.dtype.kind in "iu" else x


def same_dtype(out: Array | None, x: Array) -> Array | None:
    """`out`, unless the result has another dtype."""
    return out if out is not None and out.dtype == x.dtype else None


# exp ------------------------------------------------------------------------------------------------------------------
@kernel("exp", place=BOTH, dtypes=NUMBERS)
def exp(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """e to the power of X."""
    x = as_float(X, xp)
    return xp.exp(x, out=same_dtype(out, x))


@kernel("exp_grad", place=BOTH, dtypes=NUMBERS)
def exp_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD Out."""
    return Out_grad * conjugate(Out, xp)


# expm1 ----------------------------------------------------------------------------------------------------------------
@kernel("expm1", place=BOTH, dtypes=NUMBERS)
def expm1(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """e to the power of X, less 1."""
    x = as_float(X, xp)
    result = xp.expm1(x, out=same_dtype(out, x))
    if x.dtype.kind != "c":
        return result
    # NumPy has NaN for what is not finite, and -0 for 0
    return xp.where(xp.isfinite(x) & (x != 0), result, xp.exp(x) - x.dtype.type(1))


@kernel("expm1_grad", place=BOTH, dtypes=NUMBERS)
@rounded_once
def expm1_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD (Out + 1)."""
    return Out_grad * conjugate(Out, xp) + Out_grad


# log ------------------------------------------------------------------------------------------------------------------
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


# log10 ----------------------------------------------------------------------------------------------------------------
@kernel("log10", place=BOTH, dtypes=NUMBERS)
def log10(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Logarithm to the base 10."""
    x = as_float(X, xp)
    return xp.log10(x, out=same_dtype(out, x))


@kernel("log10_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def log10_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / (X ln 10)."""
    return Out_grad / conjugate(X * math.log(10), xp)


# log1p ----------------------------------------------------------------------------------------------------------------
@kernel("log1p", place=BOTH, dtypes=NUMBERS)
def log1p(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Natural logarithm of 1 + X."""
    x = as_float(X, xp)
    return xp.log1p(x, out=same_dtype(out, x))


@kernel("log1p_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def log1p_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / (1 + X)."""
    return Out_grad / conjugate(1 + X, xp)


# log2 -----------------------------------------------------------------------------------------------------------------
@kernel("log2", place=BOTH, dtypes=NUMBERS)
def log2(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Logarithm to the base 2."""
    x = as_float(X, xp)
    return xp.log2(x, out=same_dtype(out, x))


@kernel("log2_grad", place=BOTH, dtypes=FLOATING)
@rounded_once
def log2_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / (X ln 2)."""
    return Out_grad / conjugate(X * math.log(2), xp)


# pow ------------------------------------------------------------------------------------------------------------------
def _exponent(x: Array, tensor: Array | None, factor: float) -> float:
    """The exponent as a Python number; a tensor is small and, on a GPU, waits for the device."""
    value = factor if tensor is None else float(tensor.reshape(-1)[0])
    return math.trunc(value) if x.dtype.kind in "iu" else value


def _derivative(x: Array, f: float, order: int, xp: ArrayModule) -> Array:
    """The derivative of x^f of that order; zeros where its constant factor is 0, also at x = 0."""
    constant = math.prod(f - i for i in range(order))
    if constant == 0:
        return xp.zeros_like(x)
    power = f - order
    if x.dtype.kind in "iu":
        raised = xp.power(x.astype(xp.float64), float(power)).astype(x.dtype) if power < 0 else xp.power(x, power)
    elif power == 2:
        raised = xp.multiply(x, x)
    else:
        raised = xp.power(x, x.dtype.type(power))
    return raised if constant == 1 else raised * x.dtype.type(constant)


@kernel("pow", place=BOTH, dtypes=REAL)
def power(X: Array, FactorTensor: Array | None = None, *, factor: float, xp: ArrayModule) -> Array:
    """X to the power of factor."""
    return _derivative(X, _exponent(X, FactorTensor, factor), 0, xp)


@kernel("pow_grad", place=BOTH, dtypes=REAL)
def pow_grad(X: Array, Out_grad: Array, FactorTensor: Array | None = None, *, factor: float, xp: ArrayModule) -> Array:
    """Out@GRAD factor X^(factor-1)."""
    return Out_grad * _derivative(X, _exponent(X, FactorTensor, factor), 1, xp)


@kernel("pow_double_grad", place=BOTH, dtypes=REAL)
def pow_double_grad(
    X: Array,
    grad_out: Array,
    grad_x_grad: Array,
    FactorTensor: Array | None = None,
    *,
    factor: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, Array | None]:
    """By X and by Out@GRAD."""
    f = _exponent(X, FactorTensor, factor)
    dx = grad_x_grad * grad_out * _derivative(X, f, 2, xp) if ctx.wants("X@GRAD") else None
    return dx, grad_x_grad * _derivative(X, f, 1, xp) if ctx.wants("grad_out@GRAD") else None


@kernel("pow_triple_grad", place=BOTH, dtypes=REAL)
def pow_triple_grad(
    X: Array,
    grad_out: Array,
    grad_grad_x: Array,
    FactorTensor: Array | None = None,
    grad_x_grad: Array | None = None,
    grad_grad_out_grad: Array | None = None,
    *,
    factor: float,
    xp: ArrayModule,
) -> dict[str, Array]:
    """By X, grad_out and grad_grad_x; an absent gradient counts as zero."""
    f, zero = _exponent(X, FactorTensor, factor), X.dtype.type(0)
    first, second, third = (_derivative(X, f, order, xp) for order in (1, 2, 3))
    a = zero if grad_x_grad is None else grad_x_grad
    b = zero if grad_grad_out_grad is None else grad_grad_out_grad
    return {
        "X@GRAD": a * grad_grad_x * grad_out * third + b * grad_grad_x * second,
        "grad_out@GRAD": a * grad_grad_x * second,
        "grad_grad_x@GRAD": a * grad_out * second + b * first,
    }


# reciprocal -----------------------------------------------------------------------------------------------------------
@kernel("reciprocal", place=BOTH, dtypes=FLOATING)
def reciprocal(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """1 / X."""
    return xp.divide(X.dtype.type(1), X, out=out)


@kernel("reciprocal_grad", place=BOTH, dtypes=FLOATING)
def reciprocal_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """-Out@GRAD Out^2."""
    return -Out_grad * conjugate(Out * Out, xp)


# rsqrt ----------------------------------------------------------------------------------------------------------------
@kernel("rsqrt", place=BOTH, dtypes=FLOATING)
def rsqrt(X: Array, *, xp: ArrayModule) -> Array:
    """1 / sqrt(X)."""
    return X.dtype.type(1) / xp.sqrt(X)


@kernel("rsqrt_grad", place=BOTH, dtypes=REAL_FLOATS)
def rsqrt_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """-Out@GRAD Out^3 / 2."""
    return Out_grad * Out.dtype.type(-0.5) * Out * Out * Out


@kernel("rsqrt_grad_grad", place=BOTH, dtypes=REAL_FLOATS)
def rsqrt_grad_grad(
    Out: Array, grad_x: Array, grad_x_grad: Array, *, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """By Out and by Out@GRAD."""
    dout = Out.dtype.type(3) * grad_x * grad_x_grad / Out if ctx.wants("Out@GRAD") else None
    ddout = Out.dtype.type(-0.5) * grad_x_grad * Out * Out * Out if ctx.wants("grad_out@GRAD") else None
    return dout, ddout


# sqrt -----------------------------------------------------------------------------------------------------------------
@kernel("sqrt", place=BOTH, dtypes=FLOATING)
def sqrt(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Square root."""
    return xp.sqrt(X, out=out)


@kernel("sqrt", place=BOTH, dtypes=REAL_FLOATS)
def sqrt_rows(X: SelectedRows, *, xp: ArrayModule) -> SelectedRows:
    """Square root of every value."""
    return with_values(X, xp.sqrt(X.value))


@kernel("sqrt_grad", place=BOTH, dtypes=REAL_FLOATS)
def sqrt_grad(Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / (2 Out)."""
    return Out_grad * Out.dtype.type(0.5) / Out


@kernel("sqrt_grad_grad", place=BOTH, dtypes=REAL_FLOATS)
def sqrt_grad_grad(
    Out: Array, grad_x: Array, grad_x_grad: Array, *, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """By Out and by Out@GRAD."""
    dout = -grad_x * grad_x_grad / Out if ctx.wants("Out@GRAD") else None
    return dout, grad_x_grad * Out.dtype.type(0.5) / Out if ctx.wants("grad_out@GRAD") else None


# square ---------------------------------------------------------------------------------------------------------------
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
