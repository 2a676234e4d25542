"""Kernels of reduce_max and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._reduce import axes_of
from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.reduce._family import at_extremum


@kernel("reduce_max", place=BOTH, dtypes=REAL)
def reduce_max(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """Greatest element over some dims."""
    return X.max(axis=axes_of(X.ndim, dim, reduce_all), keepdims=keep_dim)


@kernel("reduce_max_grad", place=BOTH, dtypes=REAL)
def reduce_max_grad(
    X: Array, Out_grad: Array, Out: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule
) -> Array:
    """Out@GRAD at every maximum."""
    return at_extremum(X, Out_grad, Out, axes_of(X.ndim, dim, reduce_all), xp)
