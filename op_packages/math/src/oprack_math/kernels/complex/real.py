"""Kernels of real and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX, FLOATS

from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.complex._family import of_parts


@kernel("real", place=BOTH, dtypes=COMPLEX)
def real(X: Array) -> Array:
    """The real part, in memory of its own."""
    return X.real.copy()


@kernel("real_grad", place=BOTH, dtypes=FLOATS | COMPLEX)
def real_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD + 0i."""
    return of_parts(Out_grad.real, 0, xp)
