"""Kernels of polygamma and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._gamma import polygamma_of


@kernel("polygamma", place=BOTH, dtypes=REAL_FLOATS)
def polygamma(x: Array, *, n: int, xp: ArrayModule) -> Array:
    """The derivative of order n of psi."""
    return polygamma_of(n, x, xp)


@kernel("polygamma_grad", place=BOTH, dtypes=REAL_FLOATS)
def polygamma_grad(x: Array, out_grad: Array, *, n: int, xp: ArrayModule) -> Array:
    """out@GRAD times the derivative of the next order."""
    return out_grad * polygamma_of(n + 1, x, xp)
