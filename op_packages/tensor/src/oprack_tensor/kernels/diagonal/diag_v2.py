"""Kernels of diag_v2 and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels.diagonal._family import on_diagonal, with_diagonal


@kernel("diag_v2", place=("cpu", "cuda"))
def diag_v2(X: Array, *, offset: int, padding_value: float, xp: ArrayModule) -> Array:
    """A matrix of a vector, the diagonal of a matrix."""
    if X.ndim == 2:
        return xp.diagonal(X, offset).copy()
    out = xp.full((X.size + abs(offset),) * 2, padding_value, X.dtype)
    matrix, where = on_diagonal(out, offset, 0, 1, xp)
    matrix[where] = X.reshape(-1)
    return out


@kernel("diag_v2_grad", place=("cpu", "cuda"))
def diag_v2_grad(X: ShapeOnly, Out_grad: Array, *, offset: int, xp: ArrayModule) -> Array:
    """The other way round."""
    if len(X.shape) == 2:
        return with_diagonal(X.shape, Out_grad, offset, 0, 1, xp)
    return xp.diagonal(Out_grad, offset).copy().reshape(X.shape)
