"""Kernels of sequence_softmax."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import padded_rows, segment_ids, segment_sum, sequence_offsets


@kernel("sequence_softmax", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def sequence_softmax(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Shifted by the largest element of each sequence."""
    offsets = sequence_offsets(ctx, "X")
    flat = X.reshape(-1)
    ids = xp.asarray(segment_ids(offsets))
    exps = xp.exp(flat - _segment_max(flat, offsets, xp)[ids])
    exps /= segment_sum(exps, offsets, xp)[ids]
    return exps.reshape(X.shape)


@kernel("sequence_softmax_grad", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def sequence_softmax_grad(Out: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Out (g - sum of Out g over the sequence)."""
    offsets = sequence_offsets(ctx, "X")
    y, g = Out.reshape(-1), Out_grad.reshape(-1)
    inner = segment_sum(y * g, offsets, xp)[xp.asarray(segment_ids(offsets))]
    return (y * (g - inner)).reshape(Out.shape)


def _segment_max(x: Array, offsets: Array, xp: ArrayModule) -> Array:
    """[n]: largest element of each sequence of x [N]; 0 for an empty one."""
    lengths = np.diff(offsets)
    out = xp.zeros(len(lengths), x.dtype)
    filled = np.flatnonzero(lengths)
    if not len(filled):
        return out
    if xp is np:
        out[filled] = np.maximum.reduceat(x, offsets[filled])
        return out
    rows, valid = padded_rows(offsets, int(lengths.max()))
    padded = xp.where(xp.asarray(valid), x[xp.asarray(rows)], -xp.inf).max(axis=1)
    return xp.where(xp.asarray(lengths > 0), padded, 0).astype(x.dtype)
