"""Kernels of masked_select."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._reduce import sum_to


@kernel("masked_select", place=("cpu", "cuda"))
def masked_select(X: Array, Mask: Array, *, xp: ArrayModule) -> Array:
    X, Mask = xp.broadcast_arrays(X, Mask)
    return X[Mask]


@kernel("masked_select_grad", place=("cpu", "cuda"))
def masked_select_grad(X: ShapeOnly, Mask: Array, Y_grad: Array, *, xp: ArrayModule) -> Array:
    shape = xp.broadcast_shapes(X.shape, Mask.shape) if X.shape != Mask.shape else X.shape
    grad = xp.zeros(shape, Y_grad.dtype)
    grad[xp.broadcast_to(Mask, shape)] = Y_grad
    return sum_to(grad, X.shape, xp)
