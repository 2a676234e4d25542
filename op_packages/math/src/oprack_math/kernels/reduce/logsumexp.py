"""Kernels of logsumexp and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._reduce import axes_of, kept, sum_over
from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("logsumexp", place=BOTH, dtypes=REAL_FLOATS)
def logsumexp(X: Array, *, axis: list[int], keepdim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """ln of the sum of e^X; the greatest element is taken out first."""
    axes = axes_of(X.ndim, axis, reduce_all)
    if not X.size:
        return xp.log(sum_over(xp.exp(X), axes, keepdim))
    top = X.max(axis=axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, X.dtype.type(0))
    total = xp.log(sum_over(xp.exp(X - top), axes, True)) + top
    return total if keepdim else xp.squeeze(total, axis=axes)


@kernel("logsumexp_grad", place=BOTH, dtypes=REAL_FLOATS)
def logsumexp_grad(
    X: Array, Out: Array, Out_grad: Array, *, axis: list[int], reduce_all: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD e^(X - Out)."""
    axes = axes_of(X.ndim, axis, reduce_all)
    return kept(Out_grad, X.shape, axes) * xp.exp(X - kept(Out, X.shape, axes))
