"""Kernels of i1e and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._bessel import bessel


@kernel("i1e", place=BOTH, dtypes=REAL_FLOATS)
def i1e(x: Array, *, xp: ArrayModule) -> Array:
    """exp(-|x|) I1(x)."""
    return bessel(x, 1, True, xp)


@kernel("i1e_grad", place=BOTH, dtypes=REAL_FLOATS)
def i1e_grad(x: Array, out: Array, out_grad: Array, *, xp: ArrayModule) -> Array:
    """out@GRAD (exp(-|x|) I0(x) - out (sign(x) + 1/x)), half of it at 0."""
    one, half = x.dtype.type(1), x.dtype.type(0.5)
    ratio = xp.where(x == 0, half, out / xp.where(x == 0, one, x))
    return out_grad * (bessel(x, 0, True, xp) - xp.sign(x) * out - ratio)
