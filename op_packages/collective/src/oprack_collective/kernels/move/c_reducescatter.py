"""Kernel of c_reducescatter."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, require_ranks, ring


@kernel("c_reducescatter", place=PLACES, dtypes=NUMBERS)
def c_reducescatter(X: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("c_reducescatter", group, nranks)
    return group.reduce_scatter(xp.ascontiguousarray(X), [len(X) // nranks] * nranks)
