"""Kernels of instance_norm and its first and second gradient."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.norm._family import double_grad, input_grad, inverse_std, moments

_PLACES = ("cpu", "cuda")


def _planes(x: Array) -> Array:
    """[N, C, P]; P = 1 for rank 2."""
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))


def _per_channel(v: Array | None) -> Array | None:
    return None if v is None else v.reshape(1, -1, 1)


@kernel("instance_norm", place=_PLACES, dtypes=FLOATS)
def instance_norm(
    X: Array, Scale: Array | None = None, Bias: Array | None = None, *, epsilon: float, xp: ArrayModule
) -> tuple[Array, ...]:
    x = _planes(X)
    mean, variance = moments(x, (2,))
    inv_std = inverse_std(variance, epsilon, xp)
    y = (x - mean) * inv_std
    if Scale is not None:
        y *= _per_channel(Scale)
    if Bias is not None:
        y += _per_channel(Bias)
    return y.reshape(X.shape), mean.reshape(-1), inv_std.reshape(-1)


@kernel("instance_norm_grad", place=_PLACES, dtypes=FLOATS)
def instance_norm_grad(
    X: Array,
    Scale: Array | None = None,
    SavedMean: Array | None = None,
    SavedVariance: Array | None = None,
    Y_grad: Array | None = None,
    *,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    x, dy = _planes(X), _planes(Y_grad)
    inv_std = SavedVariance.reshape(*x.shape[:2], 1)
    xhat = (x - SavedMean.reshape(*x.shape[:2], 1)) * inv_std
    grads = {}
    if ctx.wants("X@GRAD"):
        grads["X_grad"] = input_grad(dy, xhat, inv_std, _per_channel(Scale), (2,)).reshape(X.shape)
    if ctx.wants("Scale@GRAD"):
        grads["Scale_grad"] = (dy * xhat).sum(axis=(0, 2))
    if ctx.wants("Bias@GRAD"):
        grads["Bias_grad"] = dy.sum(axis=(0, 2))
    return grads


@kernel("instance_norm_double_grad", place=_PLACES, dtypes=FLOATS)
def instance_norm_double_grad(
    x: Array,
    fwd_scale: Array | None = None,
    saved_mean: Array | None = None,
    saved_variance: Array | None = None,
    grad_y: Array | None = None,
    grad_x_grad: Array | None = None,
    grad_scale_grad: Array | None = None,
    grad_bias_grad: Array | None = None,
    *,
    xp: ArrayModule,
) -> dict[str, Array]:
    planes = _planes(x)
    inv_std = saved_variance.reshape(*planes.shape[:2], 1)
    xhat = (planes - saved_mean.reshape(*planes.shape[:2], 1)) * inv_std
    scale = xp.ones((1, planes.shape[1], 1), x.dtype) if fwd_scale is None else _per_channel(fwd_scale)
    ddx = None if grad_x_grad is None else _planes(grad_x_grad)
    dx, dscale, ddy = double_grad(
        _planes(grad_y), ddx, _per_channel(grad_scale_grad), _per_channel(grad_bias_grad), xhat, inv_std, scale,
        (2,), (0, 2),
    )  # fmt: skip
    return {
        "x_grad": dx.reshape(x.shape),
        "fwd_scale_grad": dscale.reshape(-1),
        "grad_y_grad": ddy.reshape(x.shape),
    }
