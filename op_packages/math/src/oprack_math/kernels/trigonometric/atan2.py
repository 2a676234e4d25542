"""Kernels of atan2 and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._sets import BOTH, REAL, REAL_FLOATS


@kernel("atan2", place=BOTH, dtypes=REAL)
def atan2(X1: Array, X2: Array, *, xp: ArrayModule) -> Array:
    """The angle of each point; of integers in float64."""
    if X1.dtype.kind in "iu":
        X1, X2 = X1.astype(xp.float64), X2.astype(xp.float64)
    return xp.arctan2(X1, X2)


@kernel("atan2_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def atan2_grad(X1: Array, X2: Array, Out_grad: Array, *, ctx: KernelContext) -> tuple[Array | None, Array | None]:
    """Out@GRAD times (X2, -X1) / (X1^2 + X2^2)."""
    x, y = align(X1, X2, -1)
    g = Out_grad / (x * x + y * y)
    return sum_to(g * y, x, X1) if ctx.wants("X1@GRAD") else None, (
        sum_to(-g * x, y, X2) if ctx.wants("X2@GRAD") else None
    )
