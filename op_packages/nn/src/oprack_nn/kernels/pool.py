"""Kernels of pool2d, pool3d and their gradients."""

from __future__ import annotations

import dataclasses

import numpy as np
from oprack.errors import UnimplementedError
from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels._conv import from_channel_first, to_channel_first
from oprack_nn.kernels._pool import nonempty, pool_argmax, pool_max, pool_sum, scatter_max, spread_sum, window_sizes
from oprack_nn.ops._pool import PoolGeometry

_PLACES = ("cpu", "cuda")


def _geometry(x, attrs):
    geo = PoolGeometry.of(x.shape[2:], attrs)
    if geo.adaptive and attrs["pooling_type"] == "max":
        # Paddle slides windows of ksize by strides here; its adaptive max pooling is max_pool2d_with_index
        return dataclasses.replace(geo, adaptive=False)
    return geo


def _pool(x, attrs, data_format, xp):
    x = to_channel_first(x, data_format)
    geo = _geometry(x, attrs)
    if attrs["pooling_type"] == "max":
        y = pool_max(x, geo, xp)
    else:
        with np.errstate(invalid="ignore"):  # a window of ceil_mode that starts at the end: 0 / 0, as in Paddle
            y = pool_sum(x, geo, xp) / window_sizes(geo, attrs["exclusive"], x.dtype, xp)
    return from_channel_first(y, data_format, xp)


@kernel("pool2d", place=_PLACES, dtypes=FLOATS)
@kernel("pool3d", place=_PLACES, dtypes=FLOATS)
def pool(X, *, ksize, data_format, ctx, xp):
    return _pool(X, {**ctx.attrs, "ksize": ksize}, data_format, xp)


@kernel("pool2d_grad", place=_PLACES, dtypes=FLOATS, deterministic={"cpu"})
@kernel("pool3d_grad", place=_PLACES, dtypes=FLOATS, deterministic={"cpu"})
def pool_grad(X, Out_grad, *, ksize, pooling_type, exclusive, data_format, ctx, xp):
    x, dy = to_channel_first(X, data_format), to_channel_first(Out_grad, data_format)
    geo = _geometry(x, {**ctx.attrs, "ksize": ksize})
    # a window of ceil_mode may lie behind the end and see nothing
    dy = xp.where(nonempty(geo, xp), dy, 0)
    if pooling_type == "max":
        dx = scatter_max(dy, pool_argmax(x, geo, xp)[1], geo.spatial, xp)
    else:
        sizes = window_sizes(geo, exclusive, dy.dtype, xp)
        dx = spread_sum(dy / xp.where(sizes > 0, sizes, 1), geo, xp)
    return from_channel_first(dx, data_format, xp)


@kernel("pool2d_double_grad", place=_PLACES, dtypes=FLOATS)
def pool2d_double_grad(grad_x_grad, *, ksize, pooling_type, data_format, ctx, xp):
    if pooling_type == "max":
        raise UnimplementedError(
            "op pool2d_double_grad: max pooling has no second gradient here, since the op does not get X to see where "
            "the maxima were; use average pooling or max_pool2d_with_index"
        )
    return _pool(grad_x_grad, {**ctx.attrs, "ksize": ksize}, data_format, xp)
