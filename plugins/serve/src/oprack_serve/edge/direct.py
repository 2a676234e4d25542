"""Requests for inference that came whole are answered on their connection; all others go through ASGI.

An application of ASGI gets a dict for each request and sends one for each part of an answer, through the routes and
their middleware: that took a fifth of what a request took of the event loop. And clients send the same heads again and
again, but for the numbers behind them: what one was found to say is remembered.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from oprack_serve.access.tokens import Tokens
from oprack_serve.calls import Answer, ClientLeftError, HttpCall, HttpHead, Result, pieces_of
from oprack_serve.errors import RequestError
from oprack_serve.http import GATHERED, Bodies, Body
from oprack_serve.infer import Inference
from oprack_serve.signature import Tensor

_PATH = re.compile(rb"/v2/models/([\w.-]+)(?:/versions/(\d+))?/infer")
_BY_ASGI = {b"transfer-encoding", b"content-encoding", b"expect", b"upgrade"}
"""Headers of requests that come in parts, or need an answer before they come whole."""

MOST_HEADS, LONGEST_HEAD = 1024, 2048
_END = b"\r\n\r\n"


class Direct:
    """What connections know of the application.

    Args:
        inference: Answers requests.
        tokens: Of which each request brings one, None where none is asked for.
        read_timeout: Seconds.
    """

    def __init__(self, inference: Inference, tokens: Tokens | None, read_timeout: float) -> None:
        self.inference, self.read_timeout, self._tokens = inference, read_timeout, tokens
        self._heads: dict[bytes, tuple[HttpHead, int]] = {}  # with the size of the body
        self._default: list[tuple[bytes, bytes]] | None = None
        self._begins = b""

    def known(self, data: bytes) -> tuple[HttpHead, memoryview] | None:
        """The head and the body in what came, if that is a whole request with a head that came before."""
        end = data.find(_END, 0, LONGEST_HEAD) + len(_END)
        head, size = self._heads.get(data[:end], (None, 0))
        if head is None or len(data) - end != size or not (self._tokens is None or self._allowed(head.headers)):
            return None
        return head, memoryview(data)[end:]

    def learn(self, data: bytes, head: HttpHead, body: bytes) -> None:
        """Know that head in `data`, which is a whole request and nothing else, when it comes again."""
        end = data.find(_END, 0, LONGEST_HEAD) + len(_END)
        if end >= len(_END) and len(data) - end == len(body):
            self._heads[data[:end]] = head, len(body)
            if len(self._heads) > MOST_HEADS:
                del self._heads[next(iter(self._heads))]

    def chosen(self, url: bytes, headers: list[tuple[bytes, bytes]]) -> HttpHead | None:
        """What a head says, if a request with it is answered here once it is whole."""
        found = _PATH.fullmatch(url)
        if found is None or any(name in _BY_ASGI for name, _ in headers):
            return None
        name, version = found.groups()
        head = HttpHead(name.decode(), None if version is None else version.decode(), headers)
        return head if self._allowed(head.headers) else None  # refused there

    def begins(self, connection: HttpToolsProtocol) -> bytes:
        """The first lines of good answers, which change once in a second."""
        default = connection.server_state.default_headers
        if default is not self._default:
            self._default = default
            self._begins = STATUS_LINE[200] + b"".join([b"%b: %b\r\n" % pair for pair in default])
        return self._begins

    def _allowed(self, headers: dict[bytes, bytes]) -> bool:
        if self._tokens is not None:
            try:
                self._tokens.check(headers.get(b"authorization", b"").decode("latin-1"))
            except RequestError:
                return False
        return True

    def exchange(self, connection: HttpToolsProtocol, head: HttpHead, body: bytes | memoryview) -> None:
        """Answer a request that `chosen` or `known` has found, which is whole now."""
        Exchange(connection, self, head, body).begin()


class Exchange(HttpCall):
    """A request that is whole, and its answer on a connection, in the place of uvicorn's RequestResponseCycle.

    Args:
        connection: Where it came from.
        direct: What answers it.
        head: What the request's says.
        body: Of the request.
    """

    told_of_leaving = True
    keep_alive, disconnected, response_complete = True, False, False
    _task: asyncio.Task[None] | None = None
    _waits = True  # for what comes of it

    def __init__(self, connection: HttpToolsProtocol, direct: Direct, head: HttpHead, body: bytes | memoryview) -> None:
        super().__init__(head, connection.client, None, direct.read_timeout)
        self._connection, self._direct, self._data = connection, direct, body

    @property
    def message_event(self) -> Exchange:
        """What is set when the connection is lost. Not kept: a request that has itself ends by the collector alone."""
        return self

    def begin(self) -> None:
        """Queue the request, or have a task see to that."""
        connection = self._connection
        connection.cycle = self  # type: ignore[assignment]
        connection.tasks.add(self)  # type: ignore[arg-type]
        try:
            if not self._direct.inference.take(self, self._data):
                self._go_on(self._respond())
                return
        except Exception as error:
            # not now: the parser may be at work on what comes behind
            connection.loop.call_soon(self._answered, self._direct.inference.failed(self, error))
        self._data = b""

    async def read(self, bodies: Bodies) -> Body:
        data, self._data = self._data, b""
        return bodies.whole(data)

    def finish(self, result: Result) -> None:
        if self.result is not None:
            super().finish(result)
        elif self._waits:
            self._waits = False
            if not isinstance(result, Exception) and self.encodes_long(result):
                self._go_on(self._conclude_apart(result))
            else:
                self._answered(self._direct.inference.conclude(self, result))

    def _go_on(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = self._connection.loop.create_task(work)

    def set(self) -> None:
        """The connection is lost."""
        if not self.response_complete:
            self.finish(ClientLeftError())

    def cancel(self, msg: str | None = None) -> None:
        """The server ends, and has waited for long enough. uvicorn goes through all tasks meanwhile."""
        if self._task is not None:
            self._task.cancel(msg)
        else:
            self._connection.loop.call_soon(self.finish, RequestError(*self.when_cancelled))

    async def _respond(self) -> None:
        await self._send(await self._direct.inference.answer(self))

    async def _conclude_apart(self, outputs: dict[str, Tensor]) -> None:
        await self._send(await self._direct.inference.conclude_apart(self, outputs))

    def _answered(self, answer: Answer) -> None:
        """Send an answer, by a task where the client has to take one part before the next."""
        if answer.size >= GATHERED:
            self._go_on(self._send(answer))
            return
        try:
            if answer.status != 499 and not self.disconnected:
                known = self.known_headers(answer) if self.keep_alive else b""
                if known:
                    data = b"".join([self._direct.begins(self._connection), known, b"\r\n", *answer.pieces])
                else:
                    headers, body = self.told(answer)
                    data = b"".join([self._head(answer.status, headers), *body])
                self._connection.transport.write_whole(data)  # type: ignore[attr-defined]
        except Exception:
            self._failed()
        finally:
            self._end(answer)

    async def _send(self, answer: Answer) -> None:
        """Each piece waits until the client has taken those before it, so the answer counts as long as it is here."""
        transport, flow = self._connection.transport, self._connection.flow
        try:
            if answer.status != 499 and not self.disconnected:
                headers, body = self.told(answer)
                transport.write(self._head(answer.status, headers))
                for piece in pieces_of(body):
                    if flow.write_paused:
                        await flow.drain()
                    if self.disconnected:
                        break
                    transport.write(piece)
        except Exception:
            self._failed()
        finally:
            self._end(answer)

    def _head(self, status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
        if (b"connection", b"close") in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append((b"connection", b"close"))
        lines = [STATUS_LINE[status]]
        for name, value in (*self._connection.server_state.default_headers, *headers):
            lines += name, b": ", value, b"\r\n"
        lines.append(b"\r\n")
        return b"".join(lines)

    def _failed(self) -> None:
        self._connection.logger.exception("an answer could not be sent")
        self.keep_alive = False

    def _end(self, answer: Answer) -> None:
        connection = self._connection
        try:
            self._direct.inference.end(self, answer)
        except Exception:  # whoever called has others to answer
            self._failed()
        connection.tasks.discard(self)
        self.response_complete = True
        if not self.keep_alive:
            connection.transport.close()
        connection.on_response_complete()
