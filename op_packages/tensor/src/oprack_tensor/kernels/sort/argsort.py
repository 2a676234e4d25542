"""Kernels of argsort."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.kernels.sort._order import order_of, put_back


@kernel("argsort", place=("cpu", "cuda"))
def argsort(X, *, axis, descending, xp):
    if not X.ndim:
        return X.copy(), xp.zeros((), xp.int64)
    index = order_of(X, axis, descending, xp)
    return xp.take_along_axis(X, index, axis), index.astype(xp.int64)


@kernel("argsort_grad", place=("cpu", "cuda"))
def argsort_grad(X, Indices, Out_grad, *, axis, xp):
    return put_back(X.shape, Indices, Out_grad, axis, xp)
