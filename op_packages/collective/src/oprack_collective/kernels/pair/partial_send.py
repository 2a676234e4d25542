"""Kernel of partial_send."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, part_of, require_member, ring


@kernel("partial_send", place=PLACES, dtypes=NUMBERS)
def partial_send(X: Array, *, ring_id: int, peer: int, num: int, id: int, xp: ArrayModule) -> None:
    group = ring(ring_id)
    require_member("partial_send", "peer", peer, group)
    group.send(xp.ascontiguousarray(X.reshape(-1)[part_of("partial_send", X.size, num, id)]), peer)
