"""Kernels of squared_l2_norm and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS


@kernel("squared_l2_norm", place=BOTH, dtypes=REAL_FLOATS)
def squared_l2_norm(X: Array, *, xp: ArrayModule) -> Array:
    """Sum of squares, shape [1]."""
    flat = X.reshape(-1)
    if X.dtype.itemsize == 2:
        flat = flat.astype(xp.float32)
    return xp.dot(flat, flat).astype(X.dtype).reshape(1)


@kernel("squared_l2_norm_grad", place=BOTH, dtypes=REAL_FLOATS)
def squared_l2_norm_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """2 Out@GRAD X."""
    return X * (Out_grad.reshape(()) * X.dtype.type(2))
