"""Kernels of cumprod and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import conjugate, divide, rounded_once
from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("cumprod", place=BOTH, dtypes=NUMBERS)
@rounded_once
def cumprod(X: Array, *, dim: int, xp: ArrayModule) -> Array:
    """Running products."""
    return xp.cumprod(X, axis=dim, dtype=X.dtype) if X.ndim else X.copy()


def _sums_to_the_end(x: Array, dim: int, xp: ArrayModule) -> Array:
    return xp.flip(xp.cumsum(xp.flip(x, dim), axis=dim, dtype=x.dtype), dim)


@kernel("cumprod_grad", place=BOTH, dtypes=NUMBERS)
@rounded_once
def cumprod_grad(X: Array, Out: Array, Out_grad: Array, *, dim: int, xp: ArrayModule) -> Array:
    """Sums of Out@GRAD Out from each element on, divided by it; without that element where it is the first zero."""
    if not X.ndim:
        return Out_grad.copy()
    x, out = conjugate(X, xp), conjugate(Out, xp)
    zeros = xp.cumsum(x == 0, axis=dim)
    first, one = (zeros == 1) & (x == 0), x.dtype.type(1)
    without = xp.cumprod(xp.where(first, one, x), axis=dim, dtype=x.dtype)
    before = divide(_sums_to_the_end(Out_grad * out, dim, xp), xp.where(x == 0, one, x), xp)
    at = _sums_to_the_end(Out_grad * without, dim, xp)
    # behind the first zero every product holds it
    return xp.where(zeros == 0, before, xp.where(first, at, x.dtype.type(0)))
