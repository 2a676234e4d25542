"""Kernels of log2 and of its gradient."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS
from oprack_math.kernels.power._family import as_float, same_dtype


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
