"""Kernels of i1 and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._bessel import bessel


@kernel("i1", place=BOTH, dtypes=REAL_FLOATS)
def i1(x: Array, *, xp: ArrayModule) -> Array:
    """I1(x)."""
    return bessel(x, 1, False, xp)


@kernel("i1_grad", place=BOTH, dtypes=REAL_FLOATS)
def i1_grad(x: Array, out: Array, out_grad: Array, *, xp: ArrayModule) -> Array:
    """out@GRAD (I0(x) - out / x), half of it at 0."""
    one, half = x.dtype.type(1), x.dtype.type(0.5)
    ratio = xp.where(x == 0, half, out / xp.where(x == 0, one, x))
    return out_grad * (bessel(x, 0, False, xp) - ratio)
