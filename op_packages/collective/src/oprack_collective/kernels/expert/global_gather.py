"""Kernel of global_gather."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, ring
from oprack_collective.kernels.expert._counts import regrouped, require_rows, tables


@kernel("global_gather", place=PLACES, dtypes=NUMBERS)
def global_gather(X: Array, local_count: Array, global_count: Array, *, ring_id: int) -> Array:
    group = ring(ring_id)
    given, got = tables("global_gather", local_count, global_count, group.size)
    require_rows("global_gather", X, got, "global_count")
    by_rank = regrouped(X, np.ascontiguousarray(got.T))
    ends = np.cumsum(got.sum(1))
    parts = [np.ascontiguousarray(by_rank[e - n : e]) for e, n in zip(ends, got.sum(1), strict=True)]
    return np.concatenate(group.all_to_all(parts, [(int(n), X.shape[1]) for n in given.sum(1)]))
