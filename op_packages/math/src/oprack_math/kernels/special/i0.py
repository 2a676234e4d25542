"""Kernels of i0 and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._bessel import bessel


@kernel("i0", place=BOTH, dtypes=REAL_FLOATS)
def i0(x: Array, *, xp: ArrayModule) -> Array:
    """I0(x)."""
    return bessel(x, 0, False, xp)


@kernel("i0_grad", place=BOTH, dtypes=REAL_FLOATS)
def i0_grad(x: Array, out_grad: Array, *, xp: ArrayModule) -> Array:
    """out@GRAD I1(x)."""
    return out_grad * bessel(x, 1, False, xp)
