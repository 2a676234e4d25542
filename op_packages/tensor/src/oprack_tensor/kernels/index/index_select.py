"""Kernels of index_select."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels._index import check_index


@kernel("index_select", place=("cpu", "cuda"))
def index_select(X, Index, *, dim, xp):
    check_index("index_select", "Index", Index, X.shape[dim], xp, low=-X.shape[dim])
    return xp.take(X, Index.reshape(-1), axis=dim)


@kernel("index_select_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def index_select_grad(X, Index, Out_grad, *, dim, xp):
    grad = xp.zeros(X.shape, Out_grad.dtype)
    axis = dim + X.ndim if dim < 0 else dim
    xp.add.at(grad, (slice(None),) * axis + (Index.reshape(-1),), Out_grad)
    return grad
