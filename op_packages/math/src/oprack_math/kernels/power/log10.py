"""Kernels of log10 and of its gradient."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS
from oprack_math.kernels.power._family import as_float, same_dtype


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
