"""Kernel of partial_recv."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype

from oprack_collective.kernels._ring import NUMBERS, PLACES, part_of, require_member, ring


@kernel("partial_recv", place=PLACES, dtypes=NUMBERS)
def partial_recv(
    *, ring_id: int, peer: int, dtype: int, out_shape: list[int], num: int, id: int, xp: ArrayModule
) -> Array:
    group = ring(ring_id)
    require_member("partial_recv", "peer", peer, group)
    found = xp.zeros(out_shape, numpy_dtype(dtype))
    part = part_of("partial_recv", found.size, num, id)
    found.reshape(-1)[part] = group.receive((part.stop - part.start,), found.dtype, peer)
    return found
