"""Kernel of c_allgather."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import ANY, PLACES, require_ranks, ring


@kernel("c_allgather", place=PLACES, dtypes=ANY)
def c_allgather(X: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("c_allgather", group, nranks)
    return group.all_gather(xp.ascontiguousarray(X))
