"""Kernels of expm1 and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, NUMBERS
from oprack_math.kernels.power._family import as_float, same_dtype


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
