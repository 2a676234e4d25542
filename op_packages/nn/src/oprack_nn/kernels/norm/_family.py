"""Normalisation over a set of axes: statistics, and the first and second gradient of xhat = (x - mean) / std.

With m() the mean over the axes and std = sqrt(var + epsilon), d xhat = P(dx) / std for the self-adjoint projection
P(v) = v - m(v) - xhat m(xhat v); everything below follows from that. `xp` is numpy or cupy.
"""

from __future__ import annotations

import math
from typing import Any

from oprack.kernel import Array, ArrayModule

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
    ddx: Array,
    ddscale: Array,
    ddbias: Array,
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
