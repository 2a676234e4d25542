"""Kernels of i1 and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._bessel import bessel


@kernel("i1", place=BOTH, dtypes=REAL_FLOATS)
def i1(x: Any, *, xp: Any) -> Any:
    """I1(x)."""
    return bessel(x, 1, False, xp)


@kernel("i1_grad", place=BOTH, dtypes=REAL_FLOATS)
def i1_grad(x: Any, out: Any, out_grad: Any, *, xp: Any) -> Any:
    """out@GRAD (I0(x) - out / x), half of it at 0."""
    one, half = x.dtype.type(1), x.dtype.type(0.5)
    ratio = xp.where(x == 0, half, out / xp.where(x == 0, one, x))
    return out_grad * (bessel(x, 0, False, xp) - ratio)
