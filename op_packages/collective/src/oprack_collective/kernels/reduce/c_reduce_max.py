"""Kernel of c_reduce_max."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, ring


@kernel("c_reduce_max", place=PLACES, dtypes=NUMBERS)
def c_reduce_max(X: Array, *, ring_id: int, root_id: int) -> Array:
    group = ring(ring_id)
    total = group.all_reduce(X, "max")
    return total if group.rank == root_id else X.copy()
