"""Kernels of max_pool2d_with_index, max_pool3d_with_index and their gradients."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.kernels._pool import pool_argmax, scatter_max
from oprack_nn.ops._pool import PoolGeometry

_PLACES = ("cpu", "cuda")


@kernel("max_pool2d_with_index", place=_PLACES, dtypes=FLOATS)
@kernel("max_pool3d_with_index", place=_PLACES, dtypes=FLOATS)
def max_pool_with_index(X, *, ctx, xp):
    out, position = pool_argmax(X, PoolGeometry.of(X.shape[2:], ctx.attrs), xp)
    return out, position.astype("int32")


@kernel("max_pool2d_with_index_grad", place=_PLACES, dtypes=FLOATS, deterministic={"cpu"})
@kernel("max_pool3d_with_index_grad", place=_PLACES, dtypes=FLOATS, deterministic={"cpu"})
def max_pool_with_index_grad(X, Mask, Out_grad, *, xp):
    return scatter_max(Out_grad, Mask.astype("int64"), X.shape[2:], xp)
