"""Kernels of spp and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.pool._family import PLACES, SCATTER, pooled, pooled_grad
from oprack_nn.ops.pool.spp import levels


@kernel("spp", place=PLACES, dtypes=FLOATS)
def spp(X: Array, *, pyramid_height: int, pooling_type: str, xp: ArrayModule) -> Array:
    n, c, *spatial = X.shape
    parts = [pooled(X, attrs, "NCHW", xp) for attrs in levels(spatial, pyramid_height, pooling_type)]
    return xp.concatenate([p.reshape(n, c * p.shape[2] * p.shape[3]) for p in parts], axis=1)


@kernel("spp_grad", dtypes=FLOATS, **SCATTER)
def spp_grad(
    X: Array, Out: Array, Out_grad: Array, *, pyramid_height: int, pooling_type: str, xp: ArrayModule
) -> Array:
    n, c, *spatial = X.shape
    dx, at = xp.zeros_like(X), 0
    for p, attrs in enumerate(levels(spatial, pyramid_height, pooling_type)):
        bins = 2**p
        part = Out_grad[:, at : at + c * bins * bins].reshape(n, c, bins, bins)
        dx += pooled_grad(X, part, attrs, "NCHW", xp)
        at += c * bins * bins
    return dx
