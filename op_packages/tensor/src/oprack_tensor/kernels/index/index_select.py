"""Kernels of index_select."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._index import check_index


@kernel("index_select", place=("cpu", "cuda"))
def index_select(X: Array, Index: Array, *, dim: int, xp: ArrayModule) -> Array:
    check_index("index_select", "Index", Index, X.shape[dim], xp, low=-X.shape[dim])
    return xp.take(X, Index.reshape(-1), axis=dim)


@kernel("index_select_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def index_select_grad(X: ShapeOnly, Index: Array, Out_grad: Array, *, dim: int, xp: ArrayModule) -> Array:
    grad = xp.zeros(X.shape, Out_grad.dtype)
    axis = dim + X.ndim if dim < 0 else dim
    xp.add.at(grad, (slice(None),) * axis + (Index.reshape(-1),), Out_grad)
    return grad
