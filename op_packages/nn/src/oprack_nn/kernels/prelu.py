"""Kernels of prelu."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS


def _slope_shape(x: Array, mode: str, data_format: str) -> tuple[int, ...]:
    """Shape in which Alpha broadcasts against X."""
    if mode == "all":
        return (1,) * x.ndim
    if mode == "element":
        return (1, *x.shape[1:])
    axis = x.ndim - 1 if data_format == "NHWC" else 1
    return tuple(n if i == axis else 1 for i, n in enumerate(x.shape))


@kernel("prelu", place=("cpu", "cuda"), dtypes=FLOATS)
def prelu(X: Array, Alpha: Array, *, mode: str, data_format: str, xp: ArrayModule) -> Array:
    return xp.where(X > 0, X, Alpha.reshape(_slope_shape(X, mode, data_format)) * X)


@kernel("prelu_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def prelu_grad(
    X: Array, Alpha: Array, Out_grad: Array, *, mode: str, data_format: str, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array | None]:
    shape = _slope_shape(X, mode, data_format)
    positive = X > 0
    dx = dalpha = None
    if ctx.wants("X@GRAD"):
        dx = xp.where(positive, Out_grad, Alpha.reshape(shape) * Out_grad)
    if ctx.wants("Alpha@GRAD"):
        shared = tuple(i for i, n in enumerate(shape) if n == 1)
        part = xp.where(positive, X.dtype.type(0), X * Out_grad)
        dalpha = part.sum(axis=shared).reshape(Alpha.shape)
    return {"X@GRAD": dx, "Alpha@GRAD": dalpha}
