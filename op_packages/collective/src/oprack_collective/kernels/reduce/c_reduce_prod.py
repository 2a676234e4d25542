"""Kernel of c_reduce_prod."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, ring


@kernel("c_reduce_prod", place=PLACES, dtypes=NUMBERS)
def c_reduce_prod(X: Array, *, ring_id: int, root_id: int) -> Array:
    group = ring(ring_id)
    total = group.all_reduce(X, "prod")
    return total if group.rank == root_id else X.copy()
