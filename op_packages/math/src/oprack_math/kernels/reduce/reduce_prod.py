"""Kernels of reduce_prod and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import accumulator, conjugate, divide
from oprack_math.kernels._reduce import axes_of, kept
from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("reduce_prod", place=BOTH, dtypes=NUMBERS)
def reduce_prod(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """Product over some dims."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return X.prod(axis=axes, dtype=accumulator(X.dtype), keepdims=keep_dim).astype(X.dtype, copy=False)


@kernel("reduce_prod_grad", place=BOTH, dtypes=NUMBERS)
def reduce_prod_grad(
    X: Array, Out_grad: Array, Out: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD Out / X."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return divide(kept(Out_grad * conjugate(Out, xp), X.shape, axes), conjugate(X, xp), xp)
