"""Kernels of abs, with gradients to second order."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, NUMBERS


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
