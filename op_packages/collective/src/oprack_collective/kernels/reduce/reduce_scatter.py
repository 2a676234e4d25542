"""Kernel of reduce_scatter."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import ANY, PLACES, require_ranks, ring


@kernel("reduce_scatter", place=PLACES, dtypes=ANY)
def reduce_scatter(x: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("reduce_scatter", group, nranks)
    return group.reduce_scatter(xp.ascontiguousarray(x), [len(x) // nranks] * nranks)
