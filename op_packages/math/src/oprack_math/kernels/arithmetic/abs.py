"""Kernels of abs, with gradients to second order."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("abs", place=BOTH, dtypes=NUMBERS)
def absolute(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """Absolute value; of complex numbers, the modulus."""
    return xp.abs(X, out=out if out is not None and out.dtype.kind != "c" else None)


@kernel("abs_grad", place=BOTH, dtypes=NUMBERS)
def abs_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD in the direction of X."""
    return Out_grad * _direction(X, xp)


@kernel("abs_double_grad", place=BOTH, dtypes=NUMBERS)
def abs_double_grad(x: Array, grad_x_grad: Array, *, xp: ArrayModule) -> Array:
    """grad_x@GRAD in the direction of x."""
    return grad_x_grad * _direction(x, xp)


def _direction(x: Array, xp: ArrayModule) -> Array:
    if x.dtype.kind != "c":
        return xp.sign(x)
    modulus = xp.abs(x)
    return xp.where(modulus == 0, x.dtype.type(0), x / modulus)
