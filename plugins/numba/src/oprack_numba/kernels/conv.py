"""Convolutions in which each channel is filtered by itself: NumPy passes over memory twice for each tap."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from oprack.kernel import Array, KernelContext, attr, decline, kernel
from oprack_nn.kernels.conv import Geometry

from oprack_numba.library import LIBRARY, usable

_FITS = usable & attr("data_format").isin("NCHW", "AnyLayout")


def depthwise(Input: Array, Filter: Array, *, ctx: KernelContext) -> Array:
    """Out [N, C * multiplier, height, width] of Input [N, C, height, width]."""
    n, c, *spatial = Input.shape
    if Filter.shape[1] != 1 or not Filter.size or Filter.shape[0] % max(c, 1):
        return decline("it adds up channels, which is a product of matrices")
    geo = Geometry.of(spatial, Filter.shape, ctx.attrs)
    if min(geo.ksize, default=0) < 1 or any(min(pad) < 0 for pad in geo.pads):
        return decline("an empty filter, or paddings that crop")
    out = tuple(
        (s + a + b - d * (q - 1) - 1) // t + 1
        for s, (a, b), d, q, t in zip(spatial, geo.pads, geo.dilations, geo.ksize, geo.strides, strict=True)
    )
    if min(out) < 1:
        return decline("windows that are larger than the input")
    from oprack_numba import loops  # imports numba

    filters = Filter.shape[0]
    x = np.ascontiguousarray(Input).reshape(-1, *spatial)
    w = np.ascontiguousarray(Filter).reshape(filters, *geo.ksize)
    y = np.empty((n, filters, *out), np.float32)
    pad = tuple(a for a, _ in geo.pads)
    run = partial(
        _planes, loops.depthwise, (x, w, y.reshape(-1, *out)), (filters // c, pad, geo.strides, geo.dilations)
    )
    LIBRARY.share(run, n * filters, y.size * math.prod(geo.ksize))
    return y


def _planes(loop: object, arrays: tuple[Array, ...], form: tuple[object, ...], first: int, last: int) -> None:
    loop(*arrays, first, last, *form)  # type: ignore[operator]


conv2d = kernel("conv2d", dtypes={"float32"}, library="numba", when=_FITS, priority=5, may_decline=True)(depthwise)

depthwise_conv2d = kernel(
    "depthwise_conv2d", dtypes={"float32"}, library="numba", when=_FITS, priority=5, may_decline=True
)(depthwise)
