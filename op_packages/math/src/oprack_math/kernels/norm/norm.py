"""Kernels of norm and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("norm", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def norm(X: Array, *, axis: int, epsilon: float, xp: ArrayModule) -> tuple[Array, Array]:
    """Vectors of length 1, and their lengths before."""
    axis = axis if X.ndim else None
    length = xp.sqrt((X * X).sum(axis=axis, keepdims=True) + X.dtype.type(epsilon))
    return X / length, length


@kernel("norm_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def norm_grad(X: Array, Norm: Array, Out_grad: Array, *, axis: int) -> Array:
    """What of Out@GRAD is across the vectors, divided by their lengths."""
    along = (X * Out_grad).sum(axis=axis if X.ndim else None, keepdims=True) / (Norm * Norm)
    return (Out_grad - X * along) / Norm
