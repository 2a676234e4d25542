"""Kernel of c_broadcast."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import ANY, PLACES, ring


@kernel("c_broadcast", place=PLACES, dtypes=ANY)
def c_broadcast(X: Array, *, ring_id: int, root: int) -> Array:
    return ring(ring_id).broadcast(X, root)
