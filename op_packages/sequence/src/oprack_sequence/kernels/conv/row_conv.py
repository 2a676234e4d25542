"""Kernels of row_conv."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import segment_ids, sequence_offsets


@kernel("row_conv", place=("cpu", "cuda"), dtypes=FLOATS)
def row_conv(X: Array, Filter: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One shifted product for each tap."""
    x, left = _rows(X, ctx)
    out = x * Filter[0]
    for k in range(1, min(len(Filter), len(x))):
        out[:-k] += xp.where(xp.asarray(left[:-k] > k)[:, None], x[k:], 0) * Filter[k]
    return out.reshape(X.shape)


@kernel("row_conv_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def row_conv_grad(X: Array, Filter: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, Array]:
    """The transposed shifts for X, one sum over rows for each tap of Filter."""
    x, left = _rows(X, ctx)
    g = Out_grad.reshape(x.shape)
    x_grad = g * Filter[0]
    filter_grad = xp.zeros_like(Filter)
    filter_grad[0] = (x * g).sum(axis=0)
    for k in range(1, min(len(Filter), len(x))):
        inside = xp.where(xp.asarray(left[:-k] > k)[:, None], g[:-k], 0)
        x_grad[k:] += inside * Filter[k]
        filter_grad[k] = (x[k:] * inside).sum(axis=0)
    return {"X@GRAD": x_grad.reshape(X.shape), "Filter@GRAD": filter_grad}


def _rows(X: Array, ctx: KernelContext) -> tuple[Array, Array]:
    """(X as rows, how many rows of its sequence are left at each row, itself included)."""
    if X.ndim == 3:
        batch, steps, width = X.shape
        return X.reshape(-1, width), np.tile(np.arange(steps, 0, -1), batch)
    offsets = sequence_offsets(ctx, "X")
    return X, offsets[1:][segment_ids(offsets)] - np.arange(offsets[-1])
