"""Messages between the server and its worker processes: a JSON header, and arrays behind it, over a socket.

Both ends are processes of one server, so sizes are taken as they come; there is no pickle all the same.
"""

from __future__ import annotations

import asyncio
import math
import socket
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
from oprack.tensor import numpy_dtype

from oprack_serve.datatypes import dtype_name
from oprack_serve.extensions.bytes_tensors import from_binary, to_binary
from oprack_serve.json_data import to_json

_SIZES = struct.Struct("<IQ")
_ALIGN = 64
_JOIN_BELOW, _FIRST = 1 << 16, 1 << 14


def pack(header: dict[str, Any], arrays: list[np.ndarray]) -> list[Any]:
    """The pieces of a message, as few as large arrays allow."""
    kept = [_plain(array) for array in arrays]
    rows = [
        [dtype_name(original.dtype), list(np.shape(original)), *([array.size] if original.dtype == object else [])]
        for array, original in zip(kept, arrays, strict=True)
    ]
    text = to_json({"header": header, "arrays": rows})
    text += b" " * (-(_SIZES.size + len(text)) % _ALIGN)  # arrays of a message that is received whole are aligned
    size = 0
    body: list[Any] = []
    for array in kept:
        data = array.reshape(-1).view(np.uint8).data
        body += [data, bytes(-len(data) % _ALIGN)]
        size += len(data) + -len(data) % _ALIGN
    head = _SIZES.pack(len(text), size) + text
    if size < _JOIN_BELOW:
        return [b"".join([head, *body])]
    return [head, *(piece for piece in body if len(piece))]


def _plain(array: np.ndarray) -> np.ndarray:
    """The array as it lies in memory; elements of BYTES one behind the other."""
    if array.dtype == object:
        return np.frombuffer(to_binary(array), np.uint8)
    return np.ascontiguousarray(array)


def unpack(text: Any, body: memoryview) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Header and arrays, which use the memory of `body`."""
    message = orjson.loads(text)
    arrays, at = [], 0
    for name, shape, *nbytes in message["arrays"]:
        count = math.prod(shape)
        if nbytes:
            size = nbytes[0]
            arrays.append(from_binary(name, body[at : at + size], tuple(shape), count))
        else:
            dtype = np.dtype(numpy_dtype(name))
            size = count * dtype.itemsize
            arrays.append(np.frombuffer(body, dtype, count, at).reshape(shape) if count else np.empty(shape, dtype))
        at += size
        at += -at % _ALIGN
    return message["header"], arrays


class Incoming:
    """A message as it comes. Each end sends one and waits for the other's, so bytes behind it are never another's."""

    def __init__(self) -> None:
        self._data, self._have = bytearray(_FIRST), 0
        self._text = self._end = _SIZES.size

    @property
    def room(self) -> memoryview:
        """Where the next bytes go."""
        return memoryview(self._data)[self._have :]

    @property
    def whole(self) -> bool:
        return self._have >= self._end and self._have > _SIZES.size

    def add(self, count: int) -> None:
        """Take note of bytes that were put into `room`."""
        known = self._have >= _SIZES.size
        self._have += count
        if not known and self._have >= _SIZES.size:
            text_size, body_size = _SIZES.unpack_from(self._data)
            self._text = _SIZES.size + text_size
            self._end = self._text + body_size
            if self._end > len(self._data):
                more = bytearray(self._end)
                more[: self._have] = memoryview(self._data)[: self._have]
                self._data = more

    def message(self) -> tuple[dict[str, Any], list[np.ndarray]]:
        view = memoryview(self._data)
        return unpack(view[_SIZES.size : self._text], view[self._text : self._end])


# The worker's end, which blocks ---------------------------------------------------------------------------------------
def send(sock: socket.socket, header: dict[str, Any], arrays: list[np.ndarray]) -> None:
    for piece in pack(header, arrays):
        sock.sendall(piece)


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[np.ndarray]] | None:
    """The next message; None when the server closed the connection."""
    incoming = Incoming()
    while not incoming.whole:
        count = sock.recv_into(incoming.room)
        if not count:
            return None
        incoming.add(count)
    return incoming.message()


# The server's end, in its event loop ----------------------------------------------------------------------------------
Message = tuple[dict[str, Any], list[np.ndarray]]


class Link(asyncio.BufferedProtocol):
    """The server's end of a connection: one message goes out, and one comes back before the next goes out."""

    transport: Any = None

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._incoming = Incoming()
        self._done: Callable[[Message | ConnectionError], None] | None = None

    def call(
        self, header: dict[str, Any], arrays: list[np.ndarray], done: Callable[[Message | ConnectionError], None]
    ) -> None:
        """Send a message; `done` is called with the answer, or with an error when the other end has gone."""
        self._done = done
        if self.transport.is_closing():
            asyncio.get_running_loop().call_soon(self._lost, "the connection is closed")
            return
        for piece in pack(header, arrays):
            self.transport.write(piece)

    async def ask(self, header: dict[str, Any], arrays: list[np.ndarray]) -> Message:
        """Send a message and wait for the answer. Raises ConnectionError when the other end has gone."""
        answer: asyncio.Future[Message | ConnectionError] = asyncio.get_running_loop().create_future()

        def answered(found: Message | ConnectionError) -> None:
            if not answer.done():  # nobody waits any more
                answer.set_result(found)

        self.call(header, arrays, answered)
        found = await answer
        if isinstance(found, ConnectionError):
            raise found
        return found

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, _: int) -> memoryview:
        return self._incoming.room

    def buffer_updated(self, count: int) -> None:
        self._incoming.add(count)
        if self._incoming.whole:
            incoming, self._incoming = self._incoming, Incoming()
            done, self._done = self._done, None
            if done is not None:
                done(incoming.message())

    def connection_lost(self, error: Exception | None) -> None:
        self._on_lost()
        self._lost(str(error or "the worker closed the connection"))

    def _lost(self, why: str) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(ConnectionResetError(why))
