"""Kernels of fsp and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

_PLACES = ("cpu", "cuda")


def _planes(x: Array) -> Array:
    n, c, h, w = x.shape
    return x.reshape(n, c, h * w)


@kernel("fsp", place=_PLACES, dtypes=FLOATS)
def fsp(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    x, y = _planes(X), _planes(Y)
    return xp.matmul(x, y.transpose(0, 2, 1)) / X.dtype.type(max(x.shape[2], 1))


@kernel("fsp_grad", place=_PLACES, dtypes=FLOATS)
def fsp_grad(X: Array, Y: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, Array | None]:
    share = Out_grad / X.dtype.type(max(X.shape[2] * X.shape[3], 1))
    dx = xp.matmul(share, _planes(Y)).reshape(X.shape) if ctx.wants("X@GRAD") else None
    dy = xp.matmul(share.transpose(0, 2, 1), _planes(X)).reshape(Y.shape) if ctx.wants("Y@GRAD") else None
    return {"X@GRAD": dx, "Y@GRAD": dy}
