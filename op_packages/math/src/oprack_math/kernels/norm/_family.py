"""Norms of any order, and their gradients."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule

from oprack_math.kernels._reduce import sum_over


def norm_of(x: Array, order: float, axes: tuple[int, ...] | None, keep: bool, xp: ArrayModule) -> Array:
    """The norm over some dims; of order 0 the number of elements other than 0."""
    if order == 0:
        return sum_over((x != 0).astype(x.dtype), axes, keep)
    if order == 2:
        return xp.sqrt(sum_over(x * x, axes, keep))
    size = xp.abs(x)
    if math.isinf(order):
        return (size.max if order > 0 else size.min)(axis=axes, keepdims=keep)
    if order == 1:
        return sum_over(size, axes, keep)
    return xp.power(sum_over(xp.power(size, x.dtype.type(order)), axes, keep), x.dtype.type(1 / order))


def norm_gradient(x: Array, norm: Array, gradient: Array, order: float, epsilon: float, xp: ArrayModule) -> Array:
    """The gradient of norm_of, whose result and gradient have the reduced dims as 1; epsilon: added to the divisor."""
    if order == 0:
        return xp.zeros_like(x)
    if math.isinf(order):
        return gradient * xp.sign(x) * (xp.abs(x) == norm)
    power, epsilon = x.dtype.type(order - 1), x.dtype.type(epsilon)
    if order == 1:
        return gradient * xp.sign(x)
    if order == 2:
        return x * (gradient / (norm + epsilon))
    return xp.power(xp.abs(x), power) * xp.sign(x) * (gradient / (xp.power(norm, power) + epsilon))
