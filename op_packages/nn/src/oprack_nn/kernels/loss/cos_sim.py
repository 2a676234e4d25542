"""Kernels of cos_sim."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS


def _rows(x: Array) -> Array:
    return x.reshape(x.shape[0], -1) if x.size else x.reshape(x.shape[0], 0)


def _norm(rows: Array, xp: ArrayModule) -> Array:
    return xp.sqrt((rows * rows).sum(axis=1, keepdims=True))


@kernel("cos_sim", place=("cpu", "cuda"), dtypes=FLOATS)
def cos_sim(X: Array, Y: Array, *, xp: ArrayModule) -> tuple[Array, ...]:
    x, y = _rows(X), _rows(Y)
    x_norm, y_norm = _norm(x, xp), _norm(y, xp)
    return (x * y).sum(axis=1, keepdims=True) / (x_norm * y_norm), x_norm, y_norm


@kernel("cos_sim_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def cos_sim_grad(
    X: Array, Y: Array, XNorm: Array, YNorm: Array, Out: Array, Out_grad: Array, *, ctx: KernelContext
) -> dict[str, Array]:
    x, y = _rows(X), _rows(Y)
    scale = Out_grad / (XNorm * YNorm)
    dx = dy = None
    if ctx.wants("X@GRAD"):
        dx = (scale * y - Out_grad * Out / (XNorm * XNorm) * x).reshape(X.shape)
    if ctx.wants("Y@GRAD"):
        dy = scale * x - Out_grad * Out / (YNorm * YNorm) * y
        dy = (dy if len(y) == len(x) else dy.sum(axis=0)).reshape(Y.shape)
    return {"X@GRAD": dx, "Y@GRAD": dy}
