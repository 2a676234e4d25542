"""Pooling and its gradients: one kernel each for any number of spatial dims."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext
from oprack.tensor import ShapeOnly

from oprack_nn.kernels._layout import from_channel_first, to_channel_first
from oprack_nn.kernels.pool._windows import (
    nonempty,
    pool_argmax,
    pool_max,
    pool_sum,
    scatter_max,
    spread_sum,
    window_sizes,
)
from oprack_nn.ops.pool._family import PoolGeometry

PLACES = ("cpu", "cuda")
SCATTER: dict[str, Any] = {"place": PLACES, "deterministic": {"cpu"}}  # a GPU adds what meets in one place in any order


def max_pool_with_index(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> tuple[Array, Array]:
    """Maxima of the windows, and where they lie."""
    out, position = pool_argmax(X, PoolGeometry.of(X.shape[2:], ctx.attrs), xp)
    return out, position.astype("int32")


def max_pool_with_index_grad(X: ShapeOnly, Mask: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Gradients of the maxima, back where these lie."""
    return scatter_max(Out_grad, Mask.astype("int64"), X.shape[2:], xp)


def pool_geometry(x: Array, attrs: Mapping[str, Any]) -> PoolGeometry:
    """Windows as pool2d and pool3d slide them."""
    geo = PoolGeometry.of(x.shape[2:], attrs)
    if geo.adaptive and attrs["pooling_type"] == "max":
        # Paddle slides windows of ksize by strides here; its adaptive max pooling is max_pool2d_with_index
        return dataclasses.replace(geo, adaptive=False)
    return geo


def pooled(x: Array, attrs: Mapping[str, Any], data_format: str, xp: ArrayModule) -> Array:
    """Maxima or means of the windows."""
    x = to_channel_first(x, data_format)
    geo = pool_geometry(x, attrs)
    if attrs["pooling_type"] == "max":
        y = pool_max(x, geo, xp)
    else:
        with np.errstate(invalid="ignore"):  # a window of ceil_mode that starts at the end: 0 / 0, as in Paddle
            y = pool_sum(x, geo, xp) / window_sizes(geo, attrs["exclusive"], x.dtype, xp)
    return from_channel_first(y, data_format, xp)


def pool(X: Array, *, ksize: list[int], data_format: str, ctx: KernelContext, xp: ArrayModule) -> Array:
    """The kernel of pool2d and pool3d."""
    return pooled(X, {**ctx.attrs, "ksize": ksize}, data_format, xp)


def pooled_grad(x: Array, dy: Array, attrs: Mapping[str, Any], data_format: str, xp: ArrayModule) -> Array:
    """Gradients of maxima go to where the first of them lies, of means to all of the window."""
    x, dy = to_channel_first(x, data_format), to_channel_first(dy, data_format)
    geo = pool_geometry(x, attrs)
    # a window of ceil_mode may lie behind the end and see nothing
    dy = xp.where(nonempty(geo, xp), dy, 0)
    if attrs["pooling_type"] == "max":
        dx = scatter_max(dy, pool_argmax(x, geo, xp)[1], geo.spatial, xp)
    else:
        sizes = window_sizes(geo, attrs["exclusive"], dy.dtype, xp)
        dx = spread_sum(dy / xp.where(sizes > 0, sizes, 1), geo, xp)
    return from_channel_first(dx, data_format, xp)


def pool_grad(
    X: Array, Out_grad: Array, *, ksize: list[int], data_format: str, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """The kernel of the gradients of pool2d and pool3d."""
    return pooled_grad(X, Out_grad, {**ctx.attrs, "ksize": ksize}, data_format, xp)
