"""Kernel of send_v2."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import ANY, PLACES, require_member, ring, send_with_shape


@kernel("send_v2", place=PLACES, dtypes=ANY)
def send_v2(X: Array, *, ring_id: int, peer: int, dynamic_shape: bool) -> None:
    group = ring(ring_id)
    require_member("send_v2", "peer", peer, group)
    if dynamic_shape:
        send_with_shape(X, group, peer)
    else:
        group.send(X, peer)
