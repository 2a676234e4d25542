"""softmax over the last dim, one block per row; over other dims the source that serves all places."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, decline
from oprack.types import FLOATS, HALF_FLOATS

from oprack_cuda.kernels._launch import I64, cuda_kernel, dense, launch_rows

REALS = FLOATS | HALF_FLOATS
_NOT_LAST = "axis is not the last dim"


def _is_last(x: Array, axis: int) -> bool:
    return x.ndim > 0 and axis in (-1, x.ndim - 1)


@cuda_kernel("softmax", REALS, may_decline=True)
def softmax(X: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array:
    if not _is_last(X, axis):
        return decline(_NOT_LAST)
    x = dense(xp, X)
    y, width = (xp.empty(x.shape, x.dtype) if out is None else out), x.shape[-1]
    rows = x.size // max(width, 1)
    launch_rows(xp, "normalize.cu", "softmax", x.dtype, rows, width, x, y, I64(rows), I64(width))
    return y


@cuda_kernel("softmax_grad", REALS, may_decline=True)
def softmax_grad(Out: Array, Out_grad: Array, *, axis: int, xp: ArrayModule) -> Array:
    if not _is_last(Out, axis):
        return decline(_NOT_LAST)
    y, dy = dense(xp, Out), dense(xp, Out_grad)
    dx, width = xp.empty(y.shape, y.dtype), y.shape[-1]
    rows = y.size // max(width, 1)
    launch_rows(xp, "normalize.cu", "softmax_grad", y.dtype, rows, width, y, dy, dx, I64(rows), I64(width))
    return dx
