"""Kernels of normalisations."""

from __future__ import annotations

import math
from typing import Any, overload

from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.types import FLOATS

from oprack_nn.ops._layout import is_channel_last

# shared ---------------------------------------------------------------------------------------------------------------
# Normalisation over a set of axes: statistics, and the first and second gradient of xhat = (x - mean) / std.
# With m() the mean over the axes and std = sqrt(var + epsilon), d xhat = P(dx) / std for the self-adjoint projection
# P(v) = v - m(v) - xhat m(xhat v); everything below follows from that. `xp` is numpy or cupy.
Axes = tuple[int, ...]


def mean_of(x: Array, axes: Axes) -> Array:
    """Mean over axes, which stay as dims of 1; 0 for no elements."""
    return x.sum(axis=axes, keepdims=True) / max(math.prod(x.shape[a] for a in axes), 1)


def moments(x: Array, axes: Axes) -> tuple[Any, Any]:
    """Mean and biased variance over axes, which stay as dims of 1."""
    mean = mean_of(x, axes)
    centred = x - mean
    return mean, mean_of(centred * centred, axes)


def inverse_std(variance: Array, epsilon: float, xp: ArrayModule) -> Array:
    """1 / sqrt(variance + epsilon) in the dtype of variance."""
    return 1 / xp.sqrt(variance + variance.dtype.type(epsilon))


def scale_shift(x: Array, mean: Array, inv_std: Array, scale: Array | None, bias: Array | None) -> Array:
    """(x - mean) inv_std scale + bias in two passes over x; scale and bias may be None."""
    factor = inv_std if scale is None else inv_std * scale
    y = x * factor
    y += -mean * factor if bias is None else bias - mean * factor
    return y


def project(v: Array, xhat: Array, axes: Axes) -> Array:
    """P(v) of the module's text."""
    return v - mean_of(v, axes) - xhat * mean_of(xhat * v, axes)


def input_grad(dy: Array, xhat: Array, inv_std: Array, scale: Array | None, axes: Axes) -> Array:
    """Gradient of scale xhat by x; scale may be None, and need not be constant over the axes."""
    g = dy if scale is None else dy * scale
    return inv_std * project(g, xhat, axes)


def double_grad(
    dy: Array,
    ddx: Array | None,
    ddscale: Array | None,
    ddbias: Array | None,
    xhat: Array,
    inv_std: Array,
    scale: Array,
    axes: Axes,
    sums: Axes,
) -> tuple[Any, Any, Any]:
    """Gradients by x, scale and dy of <ddx, dx> + <ddscale, dscale> + <ddbias, dbias>, dims of 1 kept.

    dx, dscale = sum(dy xhat) and dbias = sum(dy) over `sums` are the first gradients of scale xhat + bias; scale is
    constant over `axes`. ddx, ddscale, ddbias may be None.
    """
    dx, dscale, ddy = 0 * xhat, 0 * scale, 0 * xhat
    if ddx is not None:
        p_ddx, p_dy = project(ddx, xhat, axes), project(dy, xhat, axes)
        a, b = mean_of(xhat * ddx, axes), mean_of(xhat * dy, axes)
        s = mean_of(ddx * dy, axes) - mean_of(ddx, axes) * mean_of(dy, axes) - a * b
        ddy = ddy + scale * inv_std * p_ddx
        dx = dx - scale * inv_std * inv_std * (s * xhat + b * p_ddx + a * p_dy)
        dscale = dscale + (ddx * p_dy * inv_std).sum(axis=sums, keepdims=True)
    if ddscale is not None:
        ddy = ddy + xhat * ddscale
        dx = dx + ddscale * inv_std * project(dy, xhat, axes)
    if ddbias is not None:
        ddy = ddy + ddbias
    return dx, dscale, ddy


# affine_channel -------------------------------------------------------------------------------------------------------
_PLACES = ("cpu", "cuda")


def _channels(x: Array, layout: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(axes of a channel's elements, shape that broadcasts a [C] array against x)."""
    axis = x.ndim - 1 if is_channel_last(layout) else 1
    return tuple(a for a in range(x.ndim) if a != axis), tuple(-1 if a == axis else 1 for a in range(x.ndim))


@kernel("affine_channel", place=_PLACES, dtypes=FLOATS)
def affine_channel(
    X: Array, Scale: Array, Bias: Array, *, data_layout: str, xp: ArrayModule, out: Array | None = None
) -> Array:
    _, shape = _channels(X, data_layout)
    out = xp.multiply(X, Scale.reshape(shape), out=out)
    out += Bias.reshape(shape)
    return out


@kernel("affine_channel_grad", place=_PLACES, dtypes=FLOATS)
def affine_channel_grad(
    X: RequiredArray = None,
    Scale: RequiredArray = None,
    Out_grad: RequiredArray = None,
    *,
    data_layout: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    axes, shape = _channels(Out_grad, data_layout)
    grads = {}
    if ctx.wants("X@GRAD"):
        grads["X_grad"] = Out_grad * Scale.reshape(shape)
    if ctx.wants("Scale@GRAD"):
        grads["Scale_grad"] = (Out_grad * X).sum(axis=axes)
    if ctx.wants("Bias@GRAD"):
        grads["Bias_grad"] = Out_grad.sum(axis=axes)
    return grads


# data_norm ------------------------------------------------------------------------------------------------------------
_NEVER = 1e-7  # a count below it is none


def _shown(x: Array, slot_dim: int, xp: ArrayModule) -> Array:
    """[N, C], whether the slot of each element was ever shown."""
    if slot_dim <= 0:
        return xp.ones(x.shape, bool)
    return xp.repeat(xp.abs(x[:, ::slot_dim]) >= _NEVER, slot_dim, axis=1)


@kernel("data_norm", place=_PLACES, dtypes=FLOATS)
def data_norm(
    X: Array,
    BatchSize: Array,
    BatchSum: Array,
    BatchSquareSum: Array,
    scale_w: Array | None = None,
    bias: Array | None = None,
    *,
    slot_dim: int,
    enable_scale_and_shift: bool,
    xp: ArrayModule,
) -> tuple[Array, Array, Array]:
    """Columns by what is known of them."""
    means, scales = BatchSum / BatchSize, xp.sqrt(BatchSize / BatchSquareSum)
    y = (X - means) * scales
    if enable_scale_and_shift:
        y = y * scale_w + bias
    return xp.where(_shown(X, slot_dim, xp), y, y.dtype.type(0)), means, scales


@kernel("data_norm_grad", place=_PLACES, dtypes=FLOATS)
def data_norm_grad(
    X: Array,
    Means: Array,
    Scales: Array,
    Y_grad: Array,
    scale_w: Array | None = None,
    *,
    slot_dim: int,
    enable_scale_and_shift: bool,
    epsilon: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """The gradient of X, and what the counts grow by."""
    shown = _shown(X, slot_dim, xp).astype(X.dtype)
    centred, flowing = X - Means, Y_grad * shown
    count = shown.sum(axis=0)
    grads = {
        "X_grad": flowing * Scales * (scale_w if enable_scale_and_shift else 1),
        "BatchSize_grad": count,
        "BatchSum_grad": (X * shown).sum(axis=0),
        "BatchSquareSum_grad": (centred * centred * shown).sum(axis=0) + count * count.dtype.type(epsilon),
        "scale_w_grad": (flowing * centred * Scales).sum(axis=0),
        "bias_grad": flowing.sum(axis=0),
    }
    return {slot: value for slot, value in grads.items() if ctx.wants(slot.replace("_grad", "@GRAD"))}


# group_norm -----------------------------------------------------------------------------------------------------------
def _grouped(x: Array, groups: int, layout: str) -> tuple[Array, tuple[int, int], tuple[int, int]]:
    """x as [N, groups, C / groups, P] or [N, P, groups, C / groups], the axes of a group, and those of a channel."""
    if is_channel_last(layout):
        return x.reshape(x.shape[0], math.prod(x.shape[1:-1]), groups, x.shape[-1] // groups), (1, 3), (0, 1)
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, math.prod(x.shape[2:])), (2, 3), (0, 3)


@overload
def _broadcast(v: Array, x: Array, axes: tuple[int, ...]) -> Array: ...
@overload
def _broadcast(v: None, x: Array, axes: tuple[int, ...]) -> None: ...
def _broadcast(v: Array | None, x: Array, axes: tuple[int, ...]) -> Array | None:
    """v with dims of 1 at `axes` of x."""
    return None if v is None else v.reshape([1 if a in axes else s for a, s in enumerate(x.shape)])


@kernel("group_norm", place=_PLACES, dtypes=FLOATS)
def group_norm(
    X: Array,
    Scale: Array | None = None,
    Bias: Array | None = None,
    *,
    epsilon: float,
    groups: int,
    data_layout: str,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    x, axes, sums = _grouped(X, groups, data_layout)
    mean, variance = moments(x, axes)
    y = (x - mean) * inverse_std(variance, epsilon, xp)
    if Scale is not None:
        y *= _broadcast(Scale, x, sums)
    if Bias is not None:
        y += _broadcast(Bias, x, sums)
    return y.reshape(X.shape), mean.reshape(-1, groups), variance.reshape(-1, groups)


@kernel("group_norm_grad", place=_PLACES, dtypes=FLOATS)
def group_norm_grad(
    X: Array,
    Scale: Array | None = None,
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    Y_grad: RequiredArray = None,
    *,
    epsilon: float,
    groups: int,
    data_layout: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    x, axes, sums = _grouped(X, groups, data_layout)
    dy = _grouped(Y_grad, groups, data_layout)[0]
    inv_std = inverse_std(_broadcast(Variance, x, axes), epsilon, xp)
    xhat = (x - _broadcast(Mean, x, axes)) * inv_std
    grads = {}
    if ctx.wants("X@GRAD"):
        grads["X_grad"] = input_grad(dy, xhat, inv_std, _broadcast(Scale, x, sums), axes).reshape(X.shape)
    if ctx.wants("Scale@GRAD"):
        grads["Scale_grad"] = (dy * xhat).sum(axis=sums).reshape(-1)
    if ctx.wants("Bias@GRAD"):
        grads["Bias_grad"] = dy.sum(axis=sums).reshape(-1)
    return grads


# instance_norm --------------------------------------------------------------------------------------------------------
def _planes(x: Array) -> Array:
    """[N, C, P]; P = 1 for rank 2."""
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))


@overload
def _per_channel(v: Array) -> Array: ...
@overload
def _per_channel(v: None) -> None: ...
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
    SavedMean: RequiredArray = None,
    SavedVariance: RequiredArray = None,
    Y_grad: RequiredArray = None,
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
    saved_mean: RequiredArray = None,
    saved_variance: RequiredArray = None,
    grad_y: RequiredArray = None,
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


# layer_norm -----------------------------------------------------------------------------------------------------------
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
    Mean: RequiredArray = None,
    Variance: RequiredArray = None,
    Y_grad: RequiredArray = None,
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


# lrn ------------------------------------------------------------------------------------------------------------------
def _around(x: Array, n: int, data_format: str) -> Array:
    """Sums over the n channels around each."""
    axis, half = (3 if is_channel_last(data_format) else 1), n // 2
    lead = (slice(None),) * axis
    total = x.copy()
    for step in range(1, min(half, x.shape[axis] - 1) + 1):
        total[(*lead, slice(step, None))] += x[(*lead, slice(None, -step))]
        total[(*lead, slice(None, -step))] += x[(*lead, slice(step, None))]
    return total


@kernel("lrn", place=_PLACES, dtypes=FLOATS)
def lrn(X: Array, *, n: int, k: float, alpha: float, beta: float, data_format: str) -> tuple[Array, Array]:
    kind = X.dtype.type
    mid = _around(X * X, n, data_format) * kind(alpha) + kind(k)
    return X * mid ** kind(-beta), mid


@kernel("lrn_grad", place=_PLACES, dtypes=FLOATS)
def lrn_grad(
    X: Array,
    Out: Array,
    MidOut: Array,
    Out_grad: Array,
    *,
    n: int,
    alpha: float,
    beta: float,
    data_format: str,
) -> Array:
    kind = X.dtype.type
    shared = _around(Out_grad * Out / MidOut, n, data_format)
    return Out_grad * MidOut ** kind(-beta) - kind(2 * alpha * beta) * X * shared
