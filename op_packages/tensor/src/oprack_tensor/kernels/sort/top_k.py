"""Kernels of top_k."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels.sort._order import put_back
from oprack_tensor.kernels.sort._top import top


@kernel("top_k", place=("cpu", "cuda"))
def top_k(X: Array, K: Array | None = None, *, k: int, xp: ArrayModule) -> tuple[Array, Array]:
    return top(X, k if K is None else int(K.reshape(-1)[0]), -1, True, xp)


@kernel("top_k_grad", place=("cpu", "cuda"))
def top_k_grad(X: ShapeOnly, Indices: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return put_back(X.shape, Indices, Out_grad, -1, xp)
