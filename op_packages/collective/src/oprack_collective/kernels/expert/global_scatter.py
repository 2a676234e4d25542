"""Kernel of global_scatter."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, ring
from oprack_collective.kernels.expert._counts import regrouped, require_rows, tables


@kernel("global_scatter", place=PLACES, dtypes=NUMBERS)
def global_scatter(X: Array, local_count: Array, global_count: Array, *, ring_id: int) -> Array:
    group = ring(ring_id)
    given, got = tables("global_scatter", local_count, global_count, group.size)
    require_rows("global_scatter", X, given, "local_count")
    ends = np.cumsum(given.sum(1))
    parts = [np.ascontiguousarray(X[e - n : e]) for e, n in zip(ends, given.sum(1), strict=True)]
    found = group.all_to_all(parts, [(int(n), X.shape[1]) for n in got.sum(1)])
    return regrouped(np.concatenate(found), got)
