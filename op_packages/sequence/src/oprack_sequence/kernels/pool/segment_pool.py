"""Kernels of segment_pool."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import offsets_of


@kernel("segment_pool", dtypes=FLOATS | INTEGERS | {"float16"})
def segment_pool(X: Array, SegmentIds: Array, *, pooltype: str, ctx: KernelContext) -> tuple[Array, Array]:
    """One reduction over the runs of equal ids."""
    counts = _counts(SegmentIds, len(X), ctx)
    offsets = offsets_of(counts)
    filled = np.flatnonzero(counts)
    out = np.zeros((len(counts), *X.shape[1:]), X.dtype)
    if len(filled):
        reduce = {"MAX": np.maximum, "MIN": np.minimum}.get(pooltype, np.add)
        out[filled] = reduce.reduceat(X, offsets[filled], axis=0)
    if pooltype == "MEAN":
        divisor = np.maximum(counts, 1).astype(X.dtype).reshape(-1, *[1] * (X.ndim - 1))
        out = (out / divisor).astype(X.dtype)
    return out, counts.astype(X.dtype)[:, None]


@kernel("segment_pool_grad", dtypes=FLOATS | INTEGERS | {"float16"})
def segment_pool_grad(
    X: Array, SegmentIds: Array, Out: Array, Out_grad: Array, *, pooltype: str, ctx: KernelContext
) -> Array:
    """One gather of rows."""
    ids = SegmentIds.reshape(-1)
    g = Out_grad[ids]
    if pooltype in ("MAX", "MIN"):
        return np.where(Out[ids] == X, g, 0).astype(X.dtype)
    if pooltype == "MEAN":
        counts = _counts(SegmentIds, len(X), ctx)
        g = (g / counts[ids].reshape(-1, *[1] * (X.ndim - 1)).astype(X.dtype)).astype(X.dtype)
    return g


def _counts(SegmentIds: Array, rows: int, ctx: KernelContext) -> Array:
    """Rows of each segment."""
    ids = SegmentIds.reshape(-1)
    if len(ids) != rows or (len(ids) and ids[0] < 0) or (np.diff(ids) < 0).any():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: SegmentIds has shape {list(SegmentIds.shape)}; expected {rows} ids, one for each row "
            "of X, that start at 0 or above and never decrease"
        )
    return np.bincount(ids)
