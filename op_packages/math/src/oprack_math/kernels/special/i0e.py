"""Kernels of i0e and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._bessel import bessel


@kernel("i0e", place=BOTH, dtypes=REAL_FLOATS)
def i0e(x: Array, *, xp: ArrayModule) -> Array:
    """exp(-|x|) I0(x)."""
    return bessel(x, 0, True, xp)


@kernel("i0e_grad", place=BOTH, dtypes=REAL_FLOATS)
def i0e_grad(x: Array, out: Array, out_grad: Array, *, xp: ArrayModule) -> Array:
    """out@GRAD (exp(-|x|) I1(x) - sign(x) out)."""
    return out_grad * (bessel(x, 1, True, xp) - xp.sign(x) * out)
