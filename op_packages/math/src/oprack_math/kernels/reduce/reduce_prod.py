"""Kernels of reduce_prod and of its gradient."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_math.kernels._numeric import accumulator, divide
from oprack_math.kernels._reduce import axes_of, kept
from oprack_math.kernels._sets import BOTH, REAL


@kernel("reduce_prod", place=BOTH, dtypes=REAL)
def reduce_prod(X, *, dim, keep_dim, reduce_all, xp):
    """Product over some dims."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return X.prod(axis=axes, dtype=accumulator(X.dtype), keepdims=keep_dim).astype(X.dtype, copy=False)


@kernel("reduce_prod_grad", place=BOTH, dtypes=REAL)
def reduce_prod_grad(X, Out_grad, Out, *, dim, reduce_all, xp):
    """Out@GRAD Out / X."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return divide(kept(Out_grad * Out, X.shape, axes), X, xp)
