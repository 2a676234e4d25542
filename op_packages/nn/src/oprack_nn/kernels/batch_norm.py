"""Kernels of batch_norm and its first and second gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.norm import double_grad, input_grad, inverse_std, moments, scale_shift
from oprack_nn.ops._layout import is_channel_last

_PLACES = ("cpu", "cuda")


def _channels(x: Array, layout: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(axes to reduce, shape that broadcasts a [C] array against x)."""
    axis = x.ndim - 1 if is_channel_last(layout) else 1
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    return tuple(a for a in range(x.ndim) if a != axis), tuple(shape)


def _global_stats(is_test: bool, trainable_statistics: bool, use_global_stats: bool) -> bool:
    return use_global_stats or (is_test and not trainable_statistics)


@kernel("batch_norm", place=_PLACES, dtypes=FLOATS)
def batch_norm(
    X: Array,
    Scale: Array | None = None,
    Bias: Array | None = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    MomentumTensor: Array | None = None,
    *,
    is_test: bool,
    momentum: float,
    epsilon: float,
    data_layout: str,
    use_global_stats: bool,
    trainable_statistics: bool,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    axes, shape = _channels(X, data_layout)
    scale = None if Scale is None else Scale.reshape(shape)
    bias = None if Bias is None else Bias.reshape(shape)
    if _global_stats(is_test, trainable_statistics, use_global_stats):
        inv_std = inverse_std(Variance, epsilon, xp)
        y = scale_shift(X, Mean.reshape(shape), inv_std.reshape(shape), scale, bias)
        return y, Mean.copy(), Variance.copy(), Mean.astype(X.dtype), inv_std.astype(X.dtype, copy=False)
    mean, variance = moments(X, axes)
    if X.size == mean.size:
        # Paddle: a single element per channel is passed on, and the running statistics stay
        return X.copy(), Mean.copy(), Variance.copy(), xp.zeros_like(Mean), xp.zeros_like(Variance)
    keep = X.dtype.type(momentum) if MomentumTensor is None else MomentumTensor.reshape(()).astype(X.dtype)
    mean_out = Mean * keep + mean.reshape(-1) * (1 - keep)
    variance_out = Variance * keep + variance.reshape(-1) * (1 - keep)
    inv_std = inverse_std(variance, epsilon, xp)
    y = scale_shift(X, mean, inv_std, scale, bias)
    return y, mean_out, variance_out, mean.reshape(-1), inv_std.reshape(-1)


def _normalised(
    x: Array,
    mean: RequiredArray,
    variance: RequiredArray,
    saved_mean: Array,
    saved_inv_std: Array,
    attrs: Mapping[str, Any],
    shape: tuple[int, ...],
    xp: ArrayModule,
) -> tuple[Array, Array, bool]:
    """(xhat, inverse std, whether they depend on x) as the forward op had them."""
    if _global_stats(attrs["is_test"], attrs["trainable_statistics"], attrs["use_global_stats"]):
        inv_std = inverse_std(variance, attrs["epsilon"], xp).reshape(shape)
        return (x - mean.reshape(shape)) * inv_std, inv_std, False
    inv_std = saved_inv_std.reshape(shape)
    return (x - saved_mean.reshape(shape)) * inv_std, inv_std, True


@kernel("batch_norm_grad", place=_PLACES, dtypes=FLOATS)
def batch_norm_grad(
    X: Array,
    Scale: Array | None = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    SavedMean: RequiredArray = None,
    SavedVariance: RequiredArray = None,
    Y_grad: RequiredArray = None,
    *,
    data_layout: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    axes, shape = _channels(X, data_layout)
    xhat, inv_std, batch = _normalised(X, Mean, Variance, SavedMean, SavedVariance, ctx.attrs, shape, xp)
    if batch and X.size == SavedMean.size:
        zeros = xp.zeros_like(SavedMean)
        return {"X_grad": Y_grad.copy(), "Scale_grad": zeros, "Bias_grad": zeros.copy()}
    scale = None if Scale is None else Scale.reshape(shape)
    grads = {}
    if ctx.wants("X@GRAD"):
        g = Y_grad if scale is None else Y_grad * scale
        grads["X_grad"] = input_grad(Y_grad, xhat, inv_std, scale, axes) if batch else g * inv_std
    if ctx.wants("Scale@GRAD"):
        grads["Scale_grad"] = (Y_grad * xhat).sum(axis=axes)
    if ctx.wants("Bias@GRAD"):
        grads["Bias_grad"] = Y_grad.sum(axis=axes)
    return grads


@kernel("batch_norm_grad_grad", place=_PLACES, dtypes=FLOATS)
def batch_norm_grad_grad(
    X: Array,
    Scale: Array | None = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    SavedMean: RequiredArray = None,
    SavedVariance: RequiredArray = None,
    DY: RequiredArray = None,
    DDX: Array | None = None,
    DDScale: Array | None = None,
    DDBias: Array | None = None,
    *,
    data_layout: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    axes, shape = _channels(X, data_layout)
    xhat, inv_std, batch = _normalised(X, Mean, Variance, SavedMean, SavedVariance, ctx.attrs, shape, xp)
    scale = xp.ones(shape, X.dtype) if Scale is None else Scale.reshape(shape)
    ddscale = None if DDScale is None else DDScale.reshape(shape)
    ddbias = None if DDBias is None else DDBias.reshape(shape)
    if batch:
        dx, dscale, ddy = double_grad(DY, DDX, ddscale, ddbias, xhat, inv_std, scale, axes, axes)
        return {"DX": dx, "DScale": dscale.reshape(-1), "DDY": ddy}
    ddx = xp.zeros_like(X) if DDX is None else DDX
    ddy = ddx * scale * inv_std
    dx = xp.zeros_like(X)
    if ddscale is not None:
        ddy, dx = ddy + xhat * ddscale, DY * ddscale * inv_std
    if ddbias is not None:
        ddy = ddy + ddbias
    return {"DX": dx, "DScale": (ddx * DY * inv_std).sum(axis=axes), "DDY": ddy}
