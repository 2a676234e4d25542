"""Kernel of p_recv."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import numpy_dtype

from oprack_collective.kernels._ring import ANY, PLACES, receive_with_shape, require_member, ring


@kernel("p_recv", place=PLACES, dtypes=ANY)
def p_recv(*, ring_id: int, peer: int, dtype: int) -> Array:
    group = ring(ring_id)
    require_member("p_recv", "peer", peer, group)
    return receive_with_shape(numpy_dtype(dtype), group, peer)
