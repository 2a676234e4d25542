"""Kernel of all_to_all."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import ANY, PLACES, exchanged_rows, ring


@kernel("all_to_all", place=PLACES, dtypes=ANY)
def all_to_all(x: Array, *, ring_id: int, xp: ArrayModule) -> Array:
    return exchanged_rows("all_to_all", x, ring(ring_id), xp)
