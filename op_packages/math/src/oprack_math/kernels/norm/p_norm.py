"""Kernels of p_norm and of its gradient."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._reduce import axes_of, kept, sum_over
from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("p_norm", place=BOTH, dtypes=REAL_FLOATS)
def p_norm(X: Array, *, porder: float, axis: int, keepdim: bool, asvector: bool, xp: ArrayModule) -> Array:
    """The norm of order porder."""
    axes = axes_of(X.ndim, [axis], asvector)
    if porder == 0:
        return sum_over((X != 0).astype(X.dtype), axes, keepdim)
    if porder == 2:
        return xp.sqrt(sum_over(X * X, axes, keepdim))
    size = xp.abs(X)
    if math.isinf(porder):
        return (size.max if porder > 0 else size.min)(axis=axes, keepdims=keepdim)
    if porder == 1:
        return sum_over(size, axes, keepdim)
    return xp.power(sum_over(xp.power(size, X.dtype.type(porder)), axes, keepdim), X.dtype.type(1 / porder))


@kernel("p_norm_grad", place=BOTH, dtypes=REAL_FLOATS)
def p_norm_grad(
    X: Array, Out: Array, Out_grad: Array, *, porder: float, axis: int, epsilon: float, asvector: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD sign(X) |X|^(p-1) / (Out^(p-1) + epsilon)."""
    axes = axes_of(X.ndim, [axis], asvector)
    if porder == 0:
        return xp.zeros_like(X)
    gradient, norm = kept(Out_grad, X.shape, axes), kept(Out, X.shape, axes)
    if math.isinf(porder):
        return gradient * xp.sign(X) * (xp.abs(X) == norm)
    power, epsilon = X.dtype.type(porder - 1), X.dtype.type(epsilon)
    if porder == 1:
        return gradient * xp.sign(X)
    if porder == 2:
        return X * (gradient / (norm + epsilon))
    return xp.power(xp.abs(X), power) * xp.sign(X) * (gradient / (xp.power(norm, power) + epsilon))
