"""Kernel of recv_v2."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import numpy_dtype

from oprack_collective.kernels._ring import ANY, PLACES, receive_with_shape, require_member, ring


@kernel("recv_v2", place=PLACES, dtypes=ANY)
def recv_v2(*, ring_id: int, peer: int, dtype: int, out_shape: list[int], dynamic_shape: bool) -> Array:
    group = ring(ring_id)
    require_member("recv_v2", "peer", peer, group)
    if dynamic_shape:
        return receive_with_shape(numpy_dtype(dtype), group, peer)
    if any(n < 0 for n in out_shape):
        raise InvalidArgumentError(
            f"op recv_v2: out_shape is {out_shape}; expected sizes, or dynamic_shape in send_v2 and recv_v2"
        )
    return group.receive(out_shape, numpy_dtype(dtype), peer)
