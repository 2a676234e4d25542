"""Kernel of c_concat."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, columns_of_all, require_ranks, ring


@kernel("c_concat", place=PLACES, dtypes=NUMBERS)
def c_concat(X: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("c_concat", group, nranks)
    return columns_of_all(X, group, xp)
