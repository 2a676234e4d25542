"""Messages between the server and its worker processes: a JSON header, and arrays behind it, over a socket.

Both ends are processes of one server, so sizes are taken as they come; there is no pickle all the same.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

import numpy as np
from oprack.tensor import numpy_dtype

_SIZES = struct.Struct("<IQ")
_ALIGN = 64
_JOIN_BELOW = 1 << 16


def pack(header: dict[str, Any], arrays: list[np.ndarray]) -> list[Any]:
    """The pieces of a message, as few as large arrays allow."""
    kept = [np.ascontiguousarray(array) for array in arrays]
    rows = [[array.dtype.name, list(np.shape(original))] for array, original in zip(kept, arrays, strict=True)]
    text = json.dumps({"header": header, "arrays": rows}, separators=(",", ":")).encode()
    size = 0
    body: list[Any] = []
    for array in kept:
        data = memoryview(array.reshape(-1).view(np.uint8))
        body += [data, bytes(-len(data) % _ALIGN)]
        size += len(data) + -len(data) % _ALIGN
    head = _SIZES.pack(len(text), size) + text
    if size < _JOIN_BELOW:
        return [b"".join([head, *body])]
    return [head, *(piece for piece in body if len(piece))]


def unpack(text: Any, body: bytearray) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Header and arrays, which use the memory of `body`."""
    message = json.loads(bytes(text))
    arrays, at = [], 0
    for name, shape in message["arrays"]:
        dtype = np.dtype(numpy_dtype(name))
        count = int(np.prod(shape, dtype=np.int64))
        arrays.append(np.frombuffer(body, dtype, count, at).reshape(shape) if count else np.empty(shape, dtype))
        at += count * dtype.itemsize
        at += -at % _ALIGN
    return message["header"], arrays


# The worker's end, which blocks ---------------------------------------------------------------------------------------
def send(sock: socket.socket, header: dict[str, Any], arrays: list[np.ndarray]) -> None:
    for piece in pack(header, arrays):
        sock.sendall(piece)


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[np.ndarray]] | None:
    """The next message; None when the server closed the connection."""
    sizes = _exactly(sock, _SIZES.size)
    if sizes is None:
        return None
    text_size, body_size = _SIZES.unpack(sizes)
    text, body = _exactly(sock, text_size), _exactly(sock, body_size)
    return None if text is None or body is None else unpack(text, body)


def _exactly(sock: socket.socket, size: int) -> bytearray | None:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = sock.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return data


# The server's end, in its event loop ----------------------------------------------------------------------------------
async def call(
    sock: socket.socket, header: dict[str, Any], arrays: list[np.ndarray]
) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Send a message and wait for the answer. Raises ConnectionError when the worker ended."""
    loop = asyncio.get_running_loop()
    for piece in pack(header, arrays):
        await loop.sock_sendall(sock, piece)
    text_size, body_size = _SIZES.unpack(await _exactly_async(loop, sock, _SIZES.size))
    text = await _exactly_async(loop, sock, text_size)
    return unpack(text, await _exactly_async(loop, sock, body_size))


async def _exactly_async(loop: asyncio.AbstractEventLoop, sock: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = await loop.sock_recv_into(sock, view)
        if not count:
            raise ConnectionResetError("the worker closed the connection")
        view = view[count:]
    return data
