"""Kernels of reduce_min and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._reduce import axes_of
from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.reduce._family import at_extremum


@kernel("reduce_min", place=BOTH, dtypes=REAL)
def reduce_min(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """Smallest element over some dims."""
    return X.min(axis=axes_of(X.ndim, dim, reduce_all), keepdims=keep_dim)


@kernel("reduce_min_grad", place=BOTH, dtypes=REAL)
def reduce_min_grad(
    X: Array, Out_grad: Array, Out: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD at every minimum."""
    return at_extremum(X, Out_grad, Out, axes_of(X.ndim, dim, reduce_all), xp)
