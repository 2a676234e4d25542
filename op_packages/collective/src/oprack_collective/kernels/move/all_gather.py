"""Kernel of all_gather."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import ANY, PLACES, require_ranks, ring


@kernel("all_gather", place=PLACES, dtypes=ANY)
def all_gather(x: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("all_gather", group, nranks)
    return group.all_gather(xp.ascontiguousarray(x))
