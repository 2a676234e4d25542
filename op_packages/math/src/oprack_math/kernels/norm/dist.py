"""Kernels of dist and of its gradient."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.norm._family import norm_gradient, norm_of


@kernel("dist", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def dist(X: Array, Y: Array, *, p: float, xp: ArrayModule) -> Array:
    """The norm of the difference; 0 of nothing."""
    difference = X - Y
    if not difference.size and math.isinf(p):
        return xp.zeros((), X.dtype)
    return xp.asarray(norm_of(difference, p, None, False, xp))


@kernel("dist_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def dist_grad(
    X: Array, Y: Array, Out: Array, Out_grad: Array, *, p: float, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """The gradient of the norm, for Y its negative."""
    x, y = align(X, Y, -1)
    difference = x - y
    g = norm_gradient(difference, Out, Out_grad, p, 0.0, xp)
    g = xp.where(Out == 0, g.dtype.type(0), g)
    return sum_to(g, x, X) if ctx.wants("X@GRAD") else None, -sum_to(g, y, Y) if ctx.wants("Y@GRAD") else None
