"""Kernels of angle and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX, FLOATS

from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.complex._family import of_parts


@kernel("angle", place=BOTH, dtypes=FLOATS | COMPLEX)
def angle(X: Array, *, xp: ArrayModule) -> Array:
    """The argument of a complex number; pi below 0 and 0 elsewhere of a real one."""
    if X.dtype.kind == "c":
        return xp.arctan2(X.imag, X.real)
    return xp.where(X < 0, X.dtype.type(xp.pi), X.dtype.type(0))


@kernel("angle_grad", place=BOTH, dtypes=FLOATS | COMPLEX)
def angle_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD i X / |X|^2, 0 at 0 and for real numbers."""
    if X.dtype.kind != "c":
        return xp.zeros_like(X)
    square = X.real * X.real + X.imag * X.imag
    g = xp.where(square == 0, square.dtype.type(0), Out_grad / xp.where(square == 0, square.dtype.type(1), square))
    return of_parts(-X.imag * g, X.real * g, xp)
