"""Kernels of index_sample."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._index import check_index


@kernel("index_sample", place=("cpu", "cuda"))
def index_sample(X: Array, Index: Array, *, xp: ArrayModule) -> Array:
    check_index("index_sample", "Index", Index, X.shape[1], xp)
    return xp.take_along_axis(X, Index, axis=1)


@kernel("index_sample_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def index_sample_grad(X: ShapeOnly, Index: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    grad = xp.zeros(X.shape, Out_grad.dtype)
    xp.add.at(grad, (xp.arange(len(X))[:, None], Index), Out_grad)
    return grad
