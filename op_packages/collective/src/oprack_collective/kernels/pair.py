"""Kernels of ops by which one rank sends to another."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype

from oprack_collective.kernels._ring import (
    ANY,
    NUMBERS,
    PLACES,
    part_of,
    receive_with_shape,
    require_member,
    ring,
    send_with_shape,
)


# p_recv ---------------------------------------------------------------------------------------------------------------
@kernel("p_recv", place=PLACES, dtypes=ANY)
def p_recv(*, ring_id: int, peer: int, dtype: int) -> Array:
    group = ring(ring_id)
    require_member("p_recv", "peer", peer, group)
    return receive_with_shape(numpy_dtype(dtype), group, peer)


# p_send ---------------------------------------------------------------------------------------------------------------
@kernel("p_send", place=PLACES, dtypes=ANY)
def p_send(x: Array, *, ring_id: int, peer: int) -> None:
    group = ring(ring_id)
    require_member("p_send", "peer", peer, group)
    send_with_shape(x, group, peer)


# partial_recv ---------------------------------------------------------------------------------------------------------
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


# partial_send ---------------------------------------------------------------------------------------------------------
@kernel("partial_send", place=PLACES, dtypes=NUMBERS)
def partial_send(X: Array, *, ring_id: int, peer: int, num: int, id: int, xp: ArrayModule) -> None:
    group = ring(ring_id)
    require_member("partial_send", "peer", peer, group)
    group.send(xp.ascontiguousarray(X.reshape(-1)[part_of("partial_send", X.size, num, id)]), peer)


# recv_v2 --------------------------------------------------------------------------------------------------------------
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


# send_v2 --------------------------------------------------------------------------------------------------------------
@kernel("send_v2", place=PLACES, dtypes=ANY)
def send_v2(X: Array, *, ring_id: int, peer: int, dynamic_shape: bool) -> None:
    group = ring(ring_id)
    require_member("send_v2", "peer", peer, group)
    if dynamic_shape:
        send_with_shape(X, group, peer)
    else:
        group.send(X, peer)
