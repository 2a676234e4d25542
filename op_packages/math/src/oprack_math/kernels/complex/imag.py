"""Kernels of imag and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX, FLOATS

from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.complex._family import of_parts


@kernel("imag", place=BOTH, dtypes=COMPLEX)
def imag(X: Array) -> Array:
    """The imaginary part, in memory of its own."""
    return X.imag.copy()


@kernel("imag_grad", place=BOTH, dtypes=FLOATS | COMPLEX)
def imag_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """0 + i Out@GRAD."""
    return of_parts(0, Out_grad.real, xp)
