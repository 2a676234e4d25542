"""Kernels of log_softmax and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS, HALF_FLOATS

from oprack_nn.kernels.activation._family import BOTH


@kernel("log_softmax", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def log_softmax(X: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array:
    y = xp.empty_like(X) if out is None else out
    if X.size == 0:
        return y
    if X.ndim == 0:
        axis = None
    xp.subtract(X, X.max(axis=axis, keepdims=True), out=y)
    y -= xp.log(xp.exp(y).sum(axis=axis, keepdims=True))
    return y


@kernel("log_softmax_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def log_softmax_grad(Out: Array, Out_grad: Array, *, axis: int, xp: ArrayModule) -> Array:
    total = Out_grad.sum(axis=axis if Out.ndim else None, keepdims=True)
    return Out_grad - xp.exp(Out) * total
