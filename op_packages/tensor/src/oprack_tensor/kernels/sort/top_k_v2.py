"""Kernels of top_k_v2."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.sort._order import put_back
from oprack_tensor.kernels.sort._top import top


@kernel("top_k_v2", place=("cpu", "cuda"))
def top_k_v2(X, K=None, *, k, axis, largest, xp):
    return top(X, k if K is None else int(K.reshape(-1)[0]), axis, largest, xp)


@kernel("top_k_v2_grad", place=("cpu", "cuda"))
def top_k_v2_grad(X, Indices, Out_grad, *, axis, xp):
    return put_back(X.shape, Indices, Out_grad, axis, xp)
