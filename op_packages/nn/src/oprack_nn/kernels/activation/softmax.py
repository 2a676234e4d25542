"""Kernels of softmax and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS, HALF_FLOATS

from oprack_nn.kernels.activation._family import BOTH


@kernel("softmax", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def softmax(X: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array | None:
    y = xp.empty_like(X) if out is None else out
    if X.size == 0:
        return y
    if X.ndim == 0:
        axis = None
    xp.subtract(X, X.max(axis=axis, keepdims=True), out=y)
    xp.exp(y, out=y)
    y /= y.sum(axis=axis, keepdims=True)
    return y


@kernel("softmax_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def softmax_grad(Out: Array, Out_grad: Array, *, axis: int, xp: ArrayModule) -> Array:
    dx = xp.empty_like(Out)
    xp.multiply(Out_grad, Out, out=dx)
    total = dx.sum(axis=axis if Out.ndim else None, keepdims=True)
    xp.subtract(Out_grad, total, out=dx)
    dx *= Out
    return dx
