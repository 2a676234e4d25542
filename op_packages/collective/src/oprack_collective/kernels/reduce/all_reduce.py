"""Kernel of all_reduce."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import ANY, PLACES, REDUCTIONS, ring


@kernel("all_reduce", place=PLACES, dtypes=ANY)
def all_reduce(x: Array, *, ring_id: int, reduce_type: int) -> Array:
    return ring(ring_id).all_reduce(x, REDUCTIONS[reduce_type])
