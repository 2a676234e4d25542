"""Kernels of element-wise functions of one input."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SelectedRows
from oprack.types import COMPLEX, FLOATS, HALF_FLOATS, INTEGERS

from oprack_math.kernels._broadcast import BOTH, conjugate
from oprack_math.kernels._erf import erf_of

REAL = FLOATS | HALF_FLOATS
NUMBERS = REAL | INTEGERS | COMPLEX


def _float(x, xp):
    """Integers as float32."""
    return x.astype(xp.float32) if x.dtype.kind in "iu" else x


def _same(out, x):
    """`out`, unless the result has another dtype."""
    return out if out is not None and out.dtype == x.dtype else None


@kernel("exp", place=BOTH, dtypes=NUMBERS)
def exp(X, *, out=None, xp):
    """e to the power of X."""
    x = _float(X, xp)
    return xp.exp(x, out=_same(out, x))


@kernel("exp_grad", place=BOTH, dtypes=NUMBERS)
def exp_grad(Out, Out_grad, *, xp):
    """Out@GRAD Out."""
    return Out_grad * conjugate(Out, xp)


@kernel("log", place=BOTH, dtypes=NUMBERS)
def log(X, *, out=None, xp):
    """Natural logarithm."""
    x = _float(X, xp)
    return xp.log(x, out=_same(out, x))


@kernel("log_grad", place=BOTH, dtypes=REAL | COMPLEX)
def log_grad(X, Out_grad, *, xp):
    """Out@GRAD / X."""
    return Out_grad / conjugate(X, xp)


@kernel("log_grad_grad", place=BOTH, dtypes=REAL)
def log_grad_grad(X, grad_out, grad_x_grad, *, ctx):
    """By X and by Out@GRAD."""
    dx = -grad_out * grad_x_grad / (X * X) if ctx.wants("X@GRAD") else None
    return dx, grad_x_grad / X if ctx.wants("grad_out@GRAD") else None


@kernel("sqrt", place=BOTH, dtypes=REAL | COMPLEX)
def sqrt(X, *, out=None, xp):
    """Square root."""
    return xp.sqrt(X, out=out)


@kernel("sqrt", place=BOTH, dtypes=REAL)
def sqrt_rows(X: SelectedRows, *, xp):
    """Square root of every value."""
    return SelectedRows(X.rows.copy(), xp.sqrt(X.value), X.height, place=X.place, check=False)


@kernel("sqrt_grad", place=BOTH, dtypes=REAL)
def sqrt_grad(Out, Out_grad, *, xp):
    """Out@GRAD / (2 Out)."""
    return Out_grad * Out.dtype.type(0.5) / Out


@kernel("sqrt_grad_grad", place=BOTH, dtypes=REAL)
def sqrt_grad_grad(Out, grad_x, grad_x_grad, *, ctx):
    """By Out and by Out@GRAD."""
    dout = -grad_x * grad_x_grad / Out if ctx.wants("Out@GRAD") else None
    return dout, grad_x_grad * Out.dtype.type(0.5) / Out if ctx.wants("grad_out@GRAD") else None


@kernel("rsqrt", place=BOTH, dtypes=REAL | COMPLEX)
def rsqrt(X, *, xp):
    """1 / sqrt(X)."""
    return X.dtype.type(1) / xp.sqrt(X)


@kernel("rsqrt_grad", place=BOTH, dtypes=REAL)
def rsqrt_grad(Out, Out_grad, *, xp):
    """-Out@GRAD Out^3 / 2."""
    return Out_grad * Out.dtype.type(-0.5) * Out * Out * Out


@kernel("rsqrt_grad_grad", place=BOTH, dtypes=REAL)
def rsqrt_grad_grad(Out, grad_x, grad_x_grad, *, ctx):
    """By Out and by Out@GRAD."""
    dout = Out.dtype.type(3) * grad_x * grad_x_grad / Out if ctx.wants("Out@GRAD") else None
    ddout = Out.dtype.type(-0.5) * grad_x_grad * Out * Out * Out if ctx.wants("grad_out@GRAD") else None
    return dout, ddout


@kernel("square", place=BOTH, dtypes=NUMBERS)
def square(X, *, xp):
    """X times X."""
    return xp.multiply(X, X)


@kernel("square", place=BOTH, dtypes=NUMBERS)
def square_rows(X: SelectedRows, *, xp):
    """Every value times itself."""
    return SelectedRows(X.rows.copy(), xp.multiply(X.value, X.value), X.height, place=X.place, check=False)


@kernel("square_grad", place=BOTH, dtypes=NUMBERS)
def square_grad(X, Out_grad, *, xp):
    """2 X Out@GRAD."""
    return Out_grad * conjugate(X, xp) * X.dtype.type(2)


@kernel("square_grad_grad", place=BOTH, dtypes=REAL | INTEGERS)
def square_grad_grad(X, grad_out, grad_x_grad, *, ctx):
    """By X and by Out@GRAD."""
    two = X.dtype.type(2)
    dx = two * grad_out * grad_x_grad if ctx.wants("X@GRAD") else None
    return dx, two * X * grad_x_grad if ctx.wants("grad_out@GRAD") else None


@kernel("reciprocal", place=BOTH, dtypes=REAL)
def reciprocal(X, *, out=None, xp):
    """1 / X."""
    return xp.divide(X.dtype.type(1), X, out=out)


@kernel("reciprocal_grad", place=BOTH, dtypes=REAL)
def reciprocal_grad(Out, Out_grad, *, xp):
    """-Out@GRAD Out^2."""
    return -Out_grad * Out * Out


@kernel("floor", place=BOTH, dtypes=REAL)
def floor(X, *, out=None, xp):
    """The greatest integer that is not greater."""
    return xp.floor(X, out=out)


@kernel("ceil", place=BOTH, dtypes=REAL)
def ceil(X, *, out=None, xp):
    """The smallest integer that is not smaller."""
    return xp.ceil(X, out=out)


@kernel("round", place=BOTH, dtypes=REAL)
def round_half_away(X, *, xp):
    """The nearest integer; halves away from zero."""
    whole = xp.trunc(X)
    return whole + xp.copysign((xp.abs(X - whole) >= 0.5).astype(X.dtype), X)


@kernel("floor_grad", place=BOTH, dtypes=REAL)
def floor_grad(Out_grad, *, xp):
    """Zeros."""
    return xp.zeros_like(Out_grad)


@kernel("ceil_grad", place=BOTH, dtypes=REAL)
def ceil_grad(Out_grad, *, xp):
    """Zeros."""
    return xp.zeros_like(Out_grad)


@kernel("round_grad", place=BOTH, dtypes=REAL)
def round_grad(Out_grad, *, xp):
    """Zeros."""
    return xp.zeros_like(Out_grad)


@kernel("erf", place=BOTH, dtypes=REAL)
def erf(X, *, xp):
    """The error function."""
    return erf_of(X, xp)


@kernel("erf_grad", place=BOTH, dtypes=REAL)
def erf_grad(X, Out_grad, *, xp):
    """Out@GRAD 2/sqrt(pi) exp(-X^2)."""
    return Out_grad * X.dtype.type(1.1283791670955126) * xp.exp(-X * X)


@kernel("sign", place=BOTH, dtypes=REAL | INTEGERS)
def sign(X, *, xp):
    """-1, 0 or 1."""
    return xp.sign(X)


@kernel("abs", place=BOTH, dtypes=NUMBERS)
def absolute(X, *, out=None, xp):
    """Absolute value; of complex numbers, the modulus."""
    return xp.abs(X, out=out if out is not None and out.dtype.kind != "c" else None)


@kernel("abs_grad", place=BOTH, dtypes=NUMBERS)
def abs_grad(X, Out_grad, *, xp):
    """Out@GRAD in the direction of X."""
    return Out_grad * _direction(X, xp)


@kernel("abs_double_grad", place=BOTH, dtypes=NUMBERS)
def abs_double_grad(x, grad_x_grad, *, xp):
    """grad_x@GRAD in the direction of x."""
    return grad_x_grad * _direction(x, xp)


def _direction(x, xp):
    if x.dtype.kind != "c":
        return xp.sign(x)
    modulus = xp.abs(x)
    return xp.where(modulus == 0, x.dtype.type(0), x / modulus)
