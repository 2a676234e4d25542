"""Kernels of renorm and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.norm._family import norm_gradient, norm_of


def _norms(x: Array, p: float, axis: int, max_norm: float, xp: ArrayModule) -> tuple[tuple[int, ...], Array, Array]:
    """(dims of a part, norms of the parts, their factors), the latter with these dims as 1."""
    axes = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    norms = norm_of(x, p, axes, True, xp)
    return axes, norms, x.dtype.type(max_norm) / norms


@kernel("renorm", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def renorm(X: Array, *, p: float, axis: int, max_norm: float, xp: ArrayModule) -> Array:
    """Parts that are too long are shortened."""
    _, norms, factors = _norms(X, p, axis, max_norm, xp)
    return xp.where(norms > max_norm, X * factors, X)


@kernel("renorm_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def renorm_grad(X: Array, Out_grad: Array, *, p: float, axis: int, max_norm: float, xp: ArrayModule) -> Array:
    """Out@GRAD, through the factor where there is one."""
    axes, norms, factors = _norms(X, p, axis, max_norm, xp)
    by_norm = -factors * (X * Out_grad).sum(axis=axes, keepdims=True) / norms
    through = factors * Out_grad + norm_gradient(X, norms, by_norm, p, 0.0, xp)
    return xp.where(norms > max_norm, through, Out_grad)
