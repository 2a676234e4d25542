"""Kernel of bipartite_match."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS

_NOTHING = 1e-6  # nearness below which there is no match


def _match(near: Array) -> tuple[Array, Array]:
    """Row of each column, and how near it is; of equal pairs that of the first column, then of the first row."""
    rows, columns = near.shape
    index, nearness = np.full(columns, -1, np.int32), np.zeros(columns, near.dtype)
    left = np.where(near < _NOTHING, -np.inf, near).T.copy()
    for _ in range(min(rows, columns)):
        column, row = divmod(int(left.argmax()), rows)
        if left[column, row] == -np.inf:
            break
        index[column], nearness[column] = row, near[row, column]
        left[column], left[:, row] = -np.inf, -np.inf
    return index, nearness


@kernel("bipartite_match", dtypes=FLOATS)
def bipartite_match(
    DistMat: Array, *, match_type: str, dist_threshold: float, ctx: KernelContext
) -> tuple[Array, Array]:
    lod = ctx.lod("DistMat")
    found = []
    for a, b in pairwise(lod[-1] if lod else (0, len(DistMat))):
        near = DistMat[a:b]
        index, nearness = _match(near)
        if match_type == "per_prediction" and len(near):
            best, at = near.max(axis=0), near.argmax(axis=0)
            taken = (index == -1) & (best >= _NOTHING) & (best >= dist_threshold)
            index, nearness = np.where(taken, at, index).astype(np.int32), np.where(taken, best, nearness)
        found.append((index, nearness))
    columns = DistMat.shape[1]
    indices = np.array([i for i, _ in found], np.int32).reshape(len(found), columns)
    return indices, np.array([d for _, d in found], DistMat.dtype).reshape(len(found), columns)
