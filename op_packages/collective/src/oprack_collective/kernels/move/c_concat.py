"""Kernel of c_concat."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, require_ranks, ring


@kernel("c_concat", place=PLACES, dtypes=NUMBERS)
def c_concat(X: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("c_concat", group, nranks)
    return xp.moveaxis(group.all_gather(xp.ascontiguousarray(xp.moveaxis(X, -1, 0))), 0, -1)
