"""Kernels of argsort."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels.sort._order import order_of, put_back


@kernel("argsort", place=("cpu", "cuda"))
def argsort(X: Array, *, axis: int, descending: bool, xp: ArrayModule) -> tuple[Array, Array]:
    if not X.ndim:
        return X.copy(), xp.zeros((), xp.int64)
    index = order_of(X, axis, descending, xp)
    return xp.take_along_axis(X, index, axis), index.astype(xp.int64)


@kernel("argsort_grad", place=("cpu", "cuda"))
def argsort_grad(X: ShapeOnly, Indices: Array, Out_grad: Array, *, axis: int, xp: ArrayModule) -> Array:
    return put_back(X.shape, Indices, Out_grad, axis, xp)
