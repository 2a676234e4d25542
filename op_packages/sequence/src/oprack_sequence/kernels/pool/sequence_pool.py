"""Kernels of sequence_pool."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import Packing, segment_ids, segment_sum, sequence_offsets, with_lod


@kernel("sequence_pool", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def sequence_pool(
    X: Array, *, pooltype: str, pad_value: float, is_test: bool, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array | LoDTensor | None]:
    """One pass over the rows; MAX with its index walks over time steps."""
    offsets = sequence_offsets(ctx, "X")
    lengths = np.diff(offsets)
    index = None
    if pooltype in ("FIRST", "LAST"):
        out = xp.empty((len(lengths), *X.shape[1:]), X.dtype)
        filled = np.flatnonzero(lengths)
        rows = offsets[filled] if pooltype == "FIRST" else offsets[filled + 1] - 1
        out[xp.asarray(filled)] = X[xp.asarray(rows)]
    elif pooltype == "MAX":
        out, index = _max(X, offsets, xp)
    else:
        out = segment_sum(X, offsets, xp)
        if pooltype != "SUM":
            out *= _weights(lengths, pooltype, X, xp)
    if not lengths.all():
        out[xp.asarray(lengths == 0)] = pad_value
    if is_test:
        index = None
    lod = ctx.lod("X")[:-1]
    return {"Out": with_lod(out, lod), "MaxIndex": index}


@kernel("sequence_pool_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def sequence_pool_grad(
    Out_grad: Array, MaxIndex: Array | None = None, *, pooltype: str, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """Spreads each row of the gradient over its sequence."""
    offsets = sequence_offsets(ctx, "X")
    lengths = np.diff(offsets)
    if pooltype in ("SUM", "AVERAGE", "SQRT"):
        g = Out_grad if pooltype == "SUM" else Out_grad * _weights(lengths, pooltype, Out_grad, xp)
        return g[xp.asarray(segment_ids(offsets))]
    x_grad = xp.zeros((int(offsets[-1]), *Out_grad.shape[1:]), Out_grad.dtype)
    filled = np.flatnonzero(lengths)
    g = Out_grad[xp.asarray(filled)]
    if pooltype == "MAX":
        width = int(np.prod(g.shape[1:]))
        rows = MaxIndex[xp.asarray(filled)].reshape(-1, width)
        x_grad.reshape(len(x_grad), width)[rows, xp.arange(width)] = g.reshape(-1, width)
    else:
        x_grad[xp.asarray(offsets[filled] if pooltype == "FIRST" else offsets[filled + 1] - 1)] = g
    return x_grad


def _weights(lengths: np.ndarray, pooltype: str, like: Array, xp: ArrayModule) -> Array:
    """1/n or 1/sqrt(n) of each sequence, shaped to multiply its row; 1 for an empty one."""
    n = np.maximum(lengths, 1).astype(like.dtype)
    weights = 1 / (n if pooltype == "AVERAGE" else np.sqrt(n))
    return xp.asarray(weights.reshape(-1, *[1] * (like.ndim - 1)))


def _max(x: Array, offsets: np.ndarray, xp: ArrayModule) -> tuple[Any, Any]:
    """Largest element of each sequence and column, and its row (the first of equals; -1 for an empty sequence)."""
    packing = Packing(offsets)
    best = xp.zeros((len(offsets) - 1, *x.shape[1:]), x.dtype)
    index = xp.full(best.shape, -1, xp.int32)
    column = (-1, *[1] * (x.ndim - 1))
    for step, (start, end) in enumerate(packing.steps):
        n = end - start
        rows = xp.asarray(packing.rows[start:end])
        candidate = x[rows]
        rows = rows.astype(xp.int32).reshape(column)
        if step == 0:
            best[:n], index[:n] = candidate, rows
        else:
            better = candidate > best[:n]
            best[:n] = xp.where(better, candidate, best[:n])
            index[:n] = xp.where(better, rows, index[:n])
    out, place = xp.empty_like(best), xp.asarray(packing.order)
    out[place] = best
    out_index = xp.empty_like(index)
    out_index[place] = index
    return out, out_index
