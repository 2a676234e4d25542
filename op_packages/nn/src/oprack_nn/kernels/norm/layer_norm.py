"""Kernels of layer_norm and its gradient."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.norm._family import input_grad, inverse_std, moments

_PLACES = ("cpu", "cuda")


def _matrix(x: Array, axis: int) -> Array:
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@kernel("layer_norm", place=_PLACES, dtypes=FLOATS)
def layer_norm(
    X: Array,
    Scale: Array | None = None,
    Bias: Array | None = None,
    *,
    epsilon: float,
    begin_norm_axis: int,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    x = _matrix(X, begin_norm_axis)
    mean, variance = moments(x, (1,))
    y = (x - mean) * inverse_std(variance, epsilon, xp)
    if Scale is not None:
        y *= Scale
    if Bias is not None:
        y += Bias
    lead = X.shape[:begin_norm_axis]
    return y.reshape(X.shape), mean.reshape(lead), variance.reshape(lead)


@kernel("layer_norm_grad", place=_PLACES, dtypes=FLOATS)
def layer_norm_grad(
    X: Array,
    Scale: Array | None = None,
    Mean: Array | None = None,
    Variance: Array | None = None,
    Y_grad: Array | None = None,
    *,
    epsilon: float,
    begin_norm_axis: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    x, dy = _matrix(X, begin_norm_axis), _matrix(Y_grad, begin_norm_axis)
    inv_std = inverse_std(Variance.reshape(-1, 1), epsilon, xp)
    xhat = (x - Mean.reshape(-1, 1)) * inv_std
    grads = {}
    if ctx.wants("X@GRAD"):
        grads["X_grad"] = input_grad(dy, xhat, inv_std, Scale, (1,)).reshape(X.shape)
    if ctx.wants("Scale@GRAD"):
        grads["Scale_grad"] = (dy * xhat).sum(axis=0)
    if ctx.wants("Bias@GRAD"):
        grads["Bias_grad"] = dy.sum(axis=0)
    return grads
