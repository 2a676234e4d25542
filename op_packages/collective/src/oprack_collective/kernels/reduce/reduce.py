"""Kernel of reduce."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import ANY, PLACES, REDUCTIONS, ring


@kernel("reduce", place=PLACES, dtypes=ANY)
def reduce(x: Array, *, ring_id: int, root_id: int, reduce_type: int) -> Array:
    group = ring(ring_id)
    total = group.all_reduce(x, REDUCTIONS[reduce_type])
    return total if group.rank == root_id else x.copy()
