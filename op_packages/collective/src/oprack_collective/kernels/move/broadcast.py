"""Kernel of broadcast."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import ANY, PLACES, ring


@kernel("broadcast", place=PLACES, dtypes=(*ANY, "complex64", "complex128"))
def broadcast(x: Array, *, ring_id: int, root: int) -> Array:
    return ring(ring_id).broadcast(x, root)
