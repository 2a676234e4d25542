"""layer_norm with statistics, scale and shift in one launch; float16 and bfloat16 too, with statistics in float32."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray
from oprack.types import FLOATS, HALF_FLOATS

from oprack_cuda.kernels._launch import F64, I64, cuda_kernel, dense, launch_rows, sums_dtype

REALS = FLOATS | HALF_FLOATS


def _rows(x: Array, axis: int) -> tuple[int, int]:
    return math.prod(x.shape[:axis]), math.prod(x.shape[axis:])


@cuda_kernel("layer_norm", REALS)
def layer_norm(
    X: Array,
    Scale: Array | None = None,
    Bias: Array | None = None,
    *,
    epsilon: float,
    begin_norm_axis: int,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    x, (rows, width), sums = dense(xp, X), _rows(X, begin_norm_axis), sums_dtype(X.dtype)
    y, lead = xp.empty(x.shape, x.dtype), x.shape[:begin_norm_axis]
    mean, variance = (xp.zeros(lead, sums) for _ in range(2))
    factors = dense(xp, Scale, sums), dense(xp, Bias, sums)
    numbers = I64(rows), I64(width), F64(epsilon)
    launch_rows(xp, "normalize.cu", "layer_norm", x.dtype, rows, width, x, *factors, y, mean, variance, *numbers)
    return y, mean, variance


@cuda_kernel("layer_norm_grad", REALS)
def layer_norm_grad(
    X: Array,
    Scale: RequiredArray = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    Y_grad: RequiredArray = None,
    *,
    epsilon: float,
    begin_norm_axis: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    x, dy, (rows, width) = dense(xp, X), dense(xp, Y_grad), _rows(X, begin_norm_axis)
    sums = sums_dtype(x.dtype)
    mean, variance = dense(xp, Mean, sums), dense(xp, Variance, sums)
    grads = {}
    if ctx.wants("X@GRAD"):
        dx = grads["X_grad"] = xp.empty(x.shape, x.dtype)
        given = x, dy, dense(xp, Scale, sums), mean, variance
        numbers = I64(rows), I64(width), F64(epsilon)
        launch_rows(xp, "normalize.cu", "layer_norm_grad", x.dtype, rows, width, *given, dx, *numbers)
    if ctx.wants("Scale@GRAD"):
        inverse = 1 / xp.sqrt(variance.reshape(rows, 1) + sums.type(epsilon))
        xhat = (x.reshape(rows, width) - mean.reshape(rows, 1)) * inverse
        grads["Scale_grad"] = (dy.reshape(rows, width) * xhat).sum(axis=0).astype(Scale.dtype, copy=False)
    if ctx.wants("Bias@GRAD"):
        kind = sums if Scale is None else Scale.dtype
        grads["Bias_grad"] = dy.reshape(rows, width).sum(axis=0, dtype=sums).astype(kind, copy=False)
    return grads
