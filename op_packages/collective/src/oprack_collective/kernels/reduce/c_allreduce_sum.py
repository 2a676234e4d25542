"""Kernel of c_allreduce_sum."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, ring


@kernel("c_allreduce_sum", place=PLACES, dtypes=NUMBERS)
def c_allreduce_sum(X: Array, *, ring_id: int) -> Array:
    return ring(ring_id).all_reduce(X, "sum")
