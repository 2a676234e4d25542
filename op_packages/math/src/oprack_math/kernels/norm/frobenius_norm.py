"""Kernels of frobenius_norm and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._reduce import axes_of, kept, sum_over
from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("frobenius_norm", place=BOTH, dtypes=REAL_FLOATS)
def frobenius_norm(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """Square root of the sum of squares."""
    return xp.sqrt(sum_over(X * X, axes_of(X.ndim, dim, reduce_all), keep_dim))


@kernel("frobenius_norm_grad", place=BOTH, dtypes=REAL_FLOATS)
def frobenius_norm_grad(
    X: Array, Out_grad: Array, Out: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD X / (Out + 1e-12), so that the norm 0 gives 0."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return X * kept(Out_grad / (Out + Out.dtype.type(1e-12)), X.shape, axes)
