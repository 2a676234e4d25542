"""Kernel of dist_concat."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import ANY, PLACES, columns_of_all, require_ranks, ring


@kernel("dist_concat", place=PLACES, dtypes=ANY)
def dist_concat(x: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("dist_concat", group, nranks)
    return columns_of_all(x, group, xp)
