"""Kernel of p_send."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import ANY, PLACES, require_member, ring, send_with_shape


@kernel("p_send", place=PLACES, dtypes=ANY)
def p_send(x: Array, *, ring_id: int, peer: int) -> None:
    group = ring(ring_id)
    require_member("p_send", "peer", peer, group)
    send_with_shape(x, group, peer)
