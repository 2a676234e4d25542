"""Kernels of index_sample."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels._index import check_index


@kernel("index_sample", place=("cpu", "cuda"))
def index_sample(X, Index, *, xp):
    check_index("index_sample", "Index", Index, X.shape[1], xp)
    return xp.take_along_axis(X, Index, axis=1)


@kernel("index_sample_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def index_sample_grad(X, Index, Out_grad, *, xp):
    grad = xp.zeros(X.shape, Out_grad.dtype)
    xp.add.at(grad, (xp.arange(len(X))[:, None], Index), Out_grad)
    return grad
