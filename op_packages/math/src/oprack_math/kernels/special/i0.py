"""Kernels of i0 and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.special._bessel import bessel


@kernel("i0", place=BOTH, dtypes=REAL_FLOATS)
def i0(x: Any, *, xp: Any) -> Any:
    """I0(x)."""
    return bessel(x, 0, False, xp)


@kernel("i0_grad", place=BOTH, dtypes=REAL_FLOATS)
def i0_grad(x: Any, out_grad: Any, *, xp: Any) -> Any:
    """out@GRAD I1(x)."""
    return out_grad * bessel(x, 1, False, xp)
