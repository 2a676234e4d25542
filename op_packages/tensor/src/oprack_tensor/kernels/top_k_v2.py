"""Kernels of top_k_v2 and top_k."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels._sort import order_of, put_back


def _top(X, k, axis, largest, xp):
    if not X.ndim:
        return X.copy(), xp.zeros((), xp.int64)
    axis += X.ndim if axis < 0 else 0
    index = order_of(X, axis, largest, xp)[(slice(None),) * axis + (slice(k),)]
    return xp.take_along_axis(X, index, axis), index.astype(xp.int64)


@kernel("top_k_v2", place=("cpu", "cuda"))
def top_k_v2(X, K=None, *, k, axis, largest, xp):
    return _top(X, k if K is None else int(K.reshape(-1)[0]), axis, largest, xp)


@kernel("top_k", place=("cpu", "cuda"))
def top_k(X, K=None, *, k, xp):
    return _top(X, k if K is None else int(K.reshape(-1)[0]), -1, True, xp)


@kernel("top_k_v2_grad", place=("cpu", "cuda"))
def top_k_v2_grad(X, Indices, Out_grad, *, axis, xp):
    return put_back(X.shape, Indices, Out_grad, axis, xp)


@kernel("top_k_grad", place=("cpu", "cuda"))
def top_k_grad(X, Indices, Out_grad, *, xp):
    return put_back(X.shape, Indices, Out_grad, -1, xp)
