"""HTTP below the routes: connections that are bounded in time and size, and bodies that are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from oprack_serve.errors import RequestError
from oprack_serve.settings import Settings

MAX_HEAD = 64 << 10
MAX_TRAILER = 4 << 10
PARSED_AT_ONCE = 16 << 10
"""Bytes: the parser calls us for each header, which bounds what those cost that are refused after it."""

GATHERED = 64 << 10
KEEP_ALIVE = 30
RESTS_LONGER, RESTS_AT_LEAST = 10, 2.0
NEVER = float("inf")


def port_config(app: Any, settings: Settings, protocol: type[HttpToolsProtocol], **options: Any) -> uvicorn.Config:
    """How uvicorn serves a port of this server: it logs nothing, says nothing of itself, and has the server's TLS.

    Args:
        app: The application.
        settings: The server's.
        protocol: Of connections.
        **options: What the port has of its own, as uvicorn.Config names it.

    Returns:
        The configuration.
    """
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        **options,
    )


class Answering(Protocol):
    """What answers requests that came whole (`oprack_serve.edge.direct`)."""

    def known(self, data: bytes) -> tuple[Any, memoryview] | None:
        """The head and the body in what came, if that is a whole request with a head that came before."""

    def chosen(self, url: bytes, headers: list[tuple[bytes, bytes]]) -> Any:
        """What it is asked for by a head, None for what is not answered so."""

    def learn(self, data: bytes, head: Any, body: bytes) -> None:
        """Know that head in `data`, which is a whole request and nothing else, when it comes again."""

    def exchange(self, connection: HttpToolsProtocol, head: Any, body: bytes | memoryview) -> None:
        """Answer a request; what does takes the place of uvicorn's RequestResponseCycle, `connection.cycle`."""


def bounded_protocol(
    seconds: float, max_connections: int, direct: Callable[[], Answering | None] = lambda: None
) -> type[HttpToolsProtocol]:
    """uvicorn's protocol for clients that are slow, or never stop sending headers, or never read their answer.

    Args:
        seconds: For the head of a request, and for reading an answer that no longer fits into the buffers.
        max_connections: Of the server.
        direct: Says what answers requests for inference that came whole, None for ASGI.

    Returns:
        The class, for `uvicorn.Config(http=...)`.
    """
    shortest = min(seconds, KEEP_ALIVE)
    # since when each waits for its client, the longest first: for the first request, the rest of one, or for an answer
    # to be read; and, apart, those that had an answer and rest until the next request
    waiting: dict[BoundedProtocol, float] = {}
    resting: dict[BoundedProtocol, float] = {}

    def dispensable() -> BoundedProtocol | None:
        """The connection that makes room for another; None when there is work for all."""
        first = next(iter(waiting), None)
        # a request that is answered without ASGI leaves it where it was: looking is rarer than asking
        rested = next((one for one in resting if one.cycle.response_complete), None)
        if first is None or rested is None:
            return first or rested
        now = time.monotonic()
        patience = max(RESTS_AT_LEAST, RESTS_LONGER * (now - waiting[first]))
        return rested if now - resting[rested] > patience else first

    class BoundedProtocol(HttpToolsProtocol):
        """Closes connections whose head is not there in time, or is too large, or whose client reads nothing.

        A connection that comes when there are `max_connections` takes the place of the one that has waited for its
        client for the longest time: for a head, a body, or for the answer to be read. So clients that are slow by the
        thousand keep no other one out, and no probe of health. One that had an answer may rest `RESTS_LONGER` times as
        long, and `RESTS_AT_LEAST` seconds: clients that connect by the thousand and ask for nothing take no connection
        from those that pause briefly.

        A connection has one timer, and requests only move the moments that it looks at: `_read_due`, when the next head
        has to be there, and `_write_due`. A moment that is set is never less than `shortest` away, so a look after that
        time at the latest is in time for all of them.
        """

        _read_due = _write_due = NEVER
        _timer: asyncio.TimerHandle | None = None
        _apart_bytes = 0
        _in_head = True
        # where the request is answered without ASGI, should it come whole with its head: what that says, and the body
        _found: Any = None
        _whole: list[bytes]
        # whether the next byte begins a request; and what came, where a request began with it
        _between = True
        _data = b""
        _answering: Answering | None = None

        def connection_made(self, transport: Any) -> None:
            self._answering = direct()
            # it has the rest of a transport by __getattr__, which no type says
            super().connection_made(cast(asyncio.Transport, _Gathering(transport, self.loop)))
            if len(self.connections) > max_connections:
                other = dispensable()
                if other is None:
                    transport.abort()
                    return
                other.end()
            self._move(waiting)
            self._read_due = time.monotonic() + seconds
            self._timer = self.loop.call_later(shortest, self._look)

        def end(self) -> None:
            """Close it at once."""
            self._move(None)
            self.connections.discard(self)  # now: more may come in this turn of the loop
            self.transport.abort()

        def _move(self, to: dict[BoundedProtocol, float] | None) -> None:
            """Have it wait from now on, rest, or neither."""
            waiting.pop(self, None)
            resting.pop(self, None)
            if to is not None:
                to[self] = time.monotonic()

        def _look(self) -> None:
            now = time.monotonic()
            if now >= self._read_due and self.cycle is not None and not self.cycle.response_complete:
                self._read_due = now + seconds  # it is the server that is slow: it reads on when this one is answered
            due = min(self._read_due, self._write_due)
            if now >= due:
                self.transport.abort()
            else:
                self._timer = self.loop.call_later(min(due - now, shortest), self._look)

        def data_received(self, data: bytes) -> None:
            if self._between:
                # the parser would find what it found when the same bytes came before
                answering, cycle = self._answering, self.cycle
                if answering is not None and (cycle is None or (cycle.response_complete and cycle.keep_alive)):
                    known = answering.known(data)
                    if known is not None:
                        self._read_due = NEVER
                        if self in waiting:
                            self._move(None)
                        answering.exchange(self, *known)
                        return
                self._data = data
            self._parse(data)
            self._data = b""

        def _parse(self, data: bytes) -> None:
            for at in range(0, len(data), PARSED_AT_ONCE):
                part = data[at : at + PARSED_AT_ONCE]
                # since the last part of a body or end of a head: bytes of heads, trailers and extensions of chunks
                self._apart_bytes += len(part)
                super().data_received(part)
                if self.transport.is_closing():
                    return
                if self._apart_bytes > (MAX_HEAD if self._in_head else MAX_TRAILER):
                    what = "head" if self._in_head else "trailer"
                    self.send_400_response(f"The {what} of the request is too large.")
                    return
            if self._found is not None:
                self._found = None
                self._go_through_asgi()
                super().on_body(b"".join(self._whole))

        def on_message_begin(self) -> None:
            self.url, self.headers, self.expect_100_continue = b"", [], False
            self._between = False
            self._read_due = time.monotonic() + seconds
            if self in waiting or self in resting:
                self._move(waiting)

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._in_head:  # nobody reads trailers
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._apart_bytes, self._in_head, self._read_due = 0, False, NEVER
            answering, parser = self._answering, self.parser
            free = self.cycle is None or self.cycle.response_complete
            stays = parser.should_keep_alive() and parser.get_http_version() == "1.1"
            if answering is not None and free and stays and parser.get_method() == b"POST":
                self._found, self._whole = answering.chosen(self.url, self.headers), []
            if self._found is None:
                self._go_through_asgi()

        def _go_through_asgi(self) -> None:
            """What uvicorn does with a head, from its beginning."""
            url, headers, expected = self.url, self.headers, self.expect_100_continue
            super().on_message_begin()
            self.url, self.expect_100_continue = url, expected
            self.headers += headers
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._apart_bytes = 0
            if self._found is None:
                super().on_body(body)
            else:
                self._whole.append(body)

        def on_message_complete(self) -> None:
            found, answering = self._found, self._answering
            if found is None or answering is None:
                super().on_message_complete()
            else:
                self._found, body = None, b"".join(self._whole)
                answering.learn(self._data, found, body)
                answering.exchange(self, found, body)
            self._in_head = self._between = True
            if not self.cycle.response_complete:
                self._move(None)

        def on_response_complete(self) -> None:
            """What uvicorn does then, but for its timer, which the next bytes end, though they may begin no request."""
            if self.pipeline:
                super().on_response_complete()
            if self.transport.is_closing():
                return
            if self.flow.read_paused:
                self.flow.resume_reading()
            now = time.monotonic()
            self._read_due = now + KEEP_ALIVE
            if self.cycle.response_complete:
                resting.pop(self, None)
                resting[self] = now
                waiting.pop(self, None)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._write_due = time.monotonic() + seconds
            self._move(waiting)

        def resume_writing(self) -> None:
            self._write_due = NEVER
            if self.cycle is not None:
                self._move(resting if self.cycle.response_complete else None)
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._move(None)
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)
            # they have each other, and would wait for the garbage collector
            self.cycle = None  # type: ignore[assignment]

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
        self.is_closing = transport.is_closing  # asked for each request

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

    def write_whole(self, data: bytes) -> None:
        """Send what nothing more follows."""
        if self._pending:
            self.write(data)
        else:
            self._transport.write(data)

    def _flush(self) -> None:
        if self._pending:
            data = b"".join(self._pending)
            self._pending, self._size = [], 0
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()


class Bodies:
    """Reads bodies, and counts them and answers: no more bytes of all at once than the server may hold."""

    def __init__(self, max_body: int, max_inflight: int) -> None:
        self.max_body, self._max_inflight = max_body, max_inflight
        self.inflight = 0

    async def read(self, receive: Callable[[], Awaitable[Any]], announced: str | None) -> Body:
        """The whole body; the caller sees to it that this takes no longer than it may.

        Args:
            receive: Of ASGI.
            announced: The header Content-Length.

        Returns:
            The body, which counts until it is released.

        Raises:
            RequestError: With 413, 400 for a length that is no number, or 503 when others fill the memory.
            ConnectionError: The client left.
        """
        if announced is not None:
            if not (announced.isascii() and announced.isdigit()):
                raise RequestError(400, f"Content-Length {announced[:40]!r} is no number")
            if len(announced) > 15 or int(announced) > self.max_body:
                raise self._too_large(announced[:40])
        body = Body(self)
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionError("the client left")
                body.add(message.get("body", b""))
                if len(body.data) > self.max_body:
                    raise self._too_large(f"more than {self.max_body}")
                self.check()
                if not message.get("more_body", False):
                    return body
        except BaseException:
            body.release()
            raise

    def whole(self, data: bytes | memoryview) -> Body:
        """A body that is there, counted. Raises RequestError as `read` does."""
        if len(data) > self.max_body:
            raise self._too_large(str(len(data)))
        body = Body(self, data)
        if self.inflight > self._max_inflight:
            body.release()
            raise self._full()
        return body

    def check(self) -> None:
        """Raise RequestError when there is more than the server may hold."""
        if self.inflight > self._max_inflight:
            raise self._full()

    def check_answer(self, size: int) -> None:
        """Raise RequestError for an answer that the server could never hold."""
        if size > self._max_inflight:
            raise RequestError(
                413,
                f"the answer would have {size} bytes; the server holds at most {self._max_inflight} of all requests "
                "and answers (--max-inflight): send fewer entries in a request",
            )

    @staticmethod
    def _full() -> RequestError:
        return RequestError(503, "other requests and answers fill the memory for them; try again later")

    def _too_large(self, what: str) -> RequestError:
        return RequestError(413, f"the body has {what} bytes; at most {self.max_body} are taken")


class Body:
    """Bytes that count against what the server may hold, until they are released."""

    __slots__ = ("_bodies", "_counted", "data")

    def __init__(self, bodies: Bodies, data: bytes | memoryview = b"") -> None:
        self._bodies, self._counted = bodies, len(data)
        self.data: bytes | bytearray | memoryview = data
        bodies.inflight += len(data)

    def add(self, chunk: bytes | memoryview) -> None:
        """Keep what came; a body that comes at once is not copied."""
        if not self.data:
            self.data = chunk
        elif isinstance(self.data, bytearray):
            self.data += chunk
        else:
            self.data = bytearray(self.data) + chunk
        self._count(len(self.data))

    def become_data(self, data: bytes) -> None:
        """Have other data in the place of what came: what that was when it was compressed. Raises as `become` does."""
        self.data = data
        self._count(len(data))
        self._bodies.check()

    def add_size(self, size: int) -> None:
        """Count bytes that did not come with the body. Raises as `become` does."""
        self._count(self._counted + size)
        self._bodies.check()

    def become(self, size: int) -> None:
        """Let go of the data: an answer of that size counts in its place. Raises RequestError when that is too much."""
        self.data = b""
        bodies = self._bodies
        bodies.inflight += size - self._counted
        self._counted = size
        bodies.check()

    def expect(self, size: int) -> None:
        """Count an answer of that size as well, which is to come. Raises RequestError when that is too much."""
        self._bodies.check_answer(size)
        counted = self._counted
        self._count(counted + size)
        try:
            self._bodies.check()
        except RequestError:
            self._count(counted)
            raise

    def release(self) -> None:
        """Give the bytes back; more than once is no error."""
        self._bodies.inflight -= self._counted
        self._counted = 0

    def _count(self, size: int) -> None:
        self._bodies.inflight += size - self._counted
        self._counted = size
