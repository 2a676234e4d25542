"""Kernel of all_to_all."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, exchanged_rows, ring


@kernel("all_to_all", place=PLACES, dtypes=NUMBERS)
def all_to_all(x: Array, *, ring_id: int, xp: ArrayModule) -> Array:
    return exchanged_rows("all_to_all", x, ring(ring_id), xp)
