"""HTTP below the routes: connections that are bounded in time and size, and bodies that are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from oprack_serve.errors import RequestError

MAX_HEAD = 64 << 10
GATHERED = 64 << 10


def bounded_protocol(head_timeout: float, write_timeout: float, max_connections: int) -> type[HttpToolsProtocol]:
    """uvicorn's protocol for clients that are slow, or never stop sending headers, or never read their answer."""

    class BoundedProtocol(HttpToolsProtocol):
        """Closes connections whose head is not there in time, or is too large, or whose client reads nothing."""

        _head_timer: asyncio.TimerHandle | None = None
        _write_timer: asyncio.TimerHandle | None = None
        _head_bytes = 0
        _in_head = True

        def connection_made(self, transport: Any) -> None:
            super().connection_made(_Gathering(transport, self.loop))
            if len(self.connections) > max_connections:
                transport.abort()
                return
            self._await_head()

        def _await_head(self) -> None:
            self._head_bytes, self._in_head = 0, True
            self._stop(self._head_timer)
            self._head_timer = self.loop.call_later(head_timeout, self.transport.abort)

        @staticmethod
        def _stop(timer: asyncio.TimerHandle | None) -> None:
            if timer is not None:
                timer.cancel()

        def data_received(self, data: bytes) -> None:
            if self._in_head:
                self._head_bytes += len(data)
            super().data_received(data)
            # the rest of a chunk that ended the head was its body
            if self._in_head and self._head_bytes > MAX_HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._in_head = True
            if self._head_timer is None:
                self._await_head()

        def on_headers_complete(self) -> None:
            self._in_head, self._head_bytes = False, 0
            self._stop(self._head_timer)
            self._head_timer = None
            super().on_headers_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stop(self._write_timer)
            self._write_timer = self.loop.call_later(write_timeout, self.transport.abort)

        def resume_writing(self) -> None:
            self._stop(self._write_timer)
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop(self._head_timer)
            self._stop(self._write_timer)
            super().connection_lost(exc)

    return BoundedProtocol


class _Gathering:
    """A transport whose small writes of one turn of the event loop go out together.

    The head of an answer and its body are written apart; each that is sent by itself costs a call of the system and
    wakes the client up for nothing.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._pending: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._size + len(data) > GATHERED:
            self._flush()
            self._transport.write(data)
            return
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.append(data)
        self._size += len(data)

    def _flush(self) -> None:
        if self._pending:
            data = b"".join(self._pending)
            self._pending, self._size = [], 0
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()


class Bodies:
    """Reads bodies, no more bytes of all of them at once than the server may hold."""

    def __init__(self, max_body: int, max_inflight: int, seconds: float) -> None:
        self._max_body, self._max_inflight, self._seconds = max_body, max_inflight, seconds
        self.inflight = 0

    async def read(self, receive: Callable[[], Any], announced: str | None) -> Body:
        """The whole body. Raises RequestError: 413, 408, or 503 when others fill the memory; ConnectionError when the
        client left.
        """
        body = Body(self)
        try:
            if announced is not None:
                if not (announced.isascii() and announced.isdigit()):
                    raise RequestError(400, f"Content-Length {announced[:40]!r} is no number")
                if len(announced) > 15 or int(announced) > self._max_body:
                    raise self._too_large(announced[:40])
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ConnectionError("the client left")
                    body.add(message.get("body", b""))
                    if len(body.data) > self._max_body:
                        raise self._too_large(f"more than {self._max_body}")
                    if self.inflight > self._max_inflight:
                        raise RequestError(503, "other requests fill the memory for bodies; try again later")
                    if not message.get("more_body", False):
                        return body
        except TimeoutError:
            body.release()
            raise RequestError(408, f"the body was not there within {self._seconds:g} seconds") from None
        except BaseException:
            body.release()
            raise

    def _too_large(self, what: str) -> RequestError:
        return RequestError(413, f"the body has {what} bytes; at most {self._max_body} are taken")


class Body:
    """Bytes that count against what the server may hold, until they are released."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies, self.data, self._counted = bodies, bytearray(), 0

    def add(self, chunk: bytes) -> None:
        self.data += chunk
        self._bodies.inflight += len(chunk)
        self._counted += len(chunk)

    def release(self) -> None:
        """Give the bytes back; more than once is no error."""
        self._bodies.inflight -= self._counted
        self._counted = 0
