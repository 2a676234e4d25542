"""Kernels of mean."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_math.kernels._numeric import accumulator
from oprack_math.kernels._reduce import spread
from oprack_math.kernels._sets import BOTH, FLOATING


@kernel("mean", place=BOTH, dtypes=FLOATING)
def mean(X: Array, *, xp: ArrayModule) -> Array:
    """Mean of all elements."""
    total = X.sum(dtype=accumulator(X.dtype))
    return (total / total.dtype.type(X.size)).astype(X.dtype)


@kernel("mean_grad", place=BOTH, dtypes=FLOATING)
def mean_grad(X: ShapeOnly, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD / n at every element."""
    return spread(Out_grad / Out_grad.dtype.type(X.size), X, None, xp)
