"""Kernels of group_norm and its gradient."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.norm._family import input_grad, inverse_std, moments
from oprack_nn.ops._layout import is_channel_last

_PLACES = ("cpu", "cuda")


def _grouped(x: Array, groups: int, layout: str) -> tuple[Array, tuple[int, int], tuple[int, int]]:
    """x as [N, groups, C / groups, P] or [N, P, groups, C / groups], the axes of a group, and those of a channel."""
    if is_channel_last(layout):
        return x.reshape(x.shape[0], math.prod(x.shape[1:-1]), groups, x.shape[-1] // groups), (1, 3), (0, 1)
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, math.prod(x.shape[2:])), (2, 3), (0, 3)


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
    Mean: Array | None = None,
    Variance: Array | None = None,
    Y_grad: Array | None = None,
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
