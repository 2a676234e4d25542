"""Requests for inference that came whole are answered on their connection; all others go through ASGI.

An application of ASGI gets a dict for each request and sends one for each part of an answer, through the routes and
their middleware: that took a fifth of what a request took of the event loop.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from oprack_serve.access.tokens import Tokens
from oprack_serve.errors import RequestError
from oprack_serve.infer import HttpCall, Inference, pieces_of

_PATH = re.compile(rb"/v2/models/([\w.-]+)(?:/versions/(\d+))?/infer")
_BY_ASGI = {b"transfer-encoding", b"content-encoding", b"expect", b"upgrade"}
"""Headers of requests that come in parts, or need an answer before they come whole."""


class Direct:
    """What connections know of the application.

    Args:
        inference: Answers requests.
        tokens: Of which each request brings one, None where none is asked for.
        read_timeout: Seconds.
    """

    def __init__(self, inference: Inference, tokens: Tokens | None, read_timeout: float) -> None:
        self.inference, self.read_timeout, self._tokens = inference, read_timeout, tokens

    def chosen(self, url: bytes, headers: list[tuple[bytes, bytes]]) -> re.Match[bytes] | None:
        """The model's name and version, if a request with this head is answered here once it is whole."""
        found = _PATH.fullmatch(url)
        if found is None or any(name in _BY_ASGI for name, _ in headers):
            return None
        if self._tokens is not None:
            try:
                self._tokens.check(dict(headers).get(b"authorization", b"").decode("latin-1"))
            except RequestError:
                return None  # refused there
        return found

    def exchange(self, connection: HttpToolsProtocol, found: re.Match[bytes], body: bytes) -> Exchange:
        """The answering of a request that `chosen` has found, which is whole now."""
        return Exchange(connection, self, found, body)


class Exchange:
    """A request and its answer on a connection, in the place of uvicorn's RequestResponseCycle.

    Args:
        connection: Where it came from.
        direct: What answers it.
        found: Of `Direct.chosen`.
        body: Of the request.
    """

    def __init__(self, connection: HttpToolsProtocol, direct: Direct, found: re.Match[bytes], body: bytes) -> None:
        self._connection, self._inference = connection, direct.inference
        self._body: bytes | None = body
        self.keep_alive, self.disconnected, self.response_complete = True, False, False
        self.message_event = self  # set when the connection is lost
        name, version = found.groups()
        self._call = HttpCall(
            name.decode(),
            None if version is None else version.decode(),
            connection.client,
            connection.headers,
            self._receive,
            direct.read_timeout,
        )
        self._left: asyncio.Future[None] | None = None
        self._task = connection.loop.create_task(self._respond())
        connection.tasks.add(self._task)

    def set(self) -> None:
        """The connection is lost."""
        if self._left is not None and not self._left.done():
            self._left.set_result(None)

    async def _receive(self) -> dict[str, Any]:
        """As ASGI has it: the body, and then that the client has left."""
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body}
        if not self.disconnected:
            self._left = self._connection.loop.create_future()
            await self._left
        return {"type": "http.disconnect"}

    async def _respond(self) -> None:
        call, connection = self._call, self._connection
        try:
            answer = await self._inference.answer(call)
            try:
                if answer.status != 499 and not self.disconnected:
                    await self._send(answer.status, *call.told(answer))
            finally:
                self._inference.end(call, answer)
        except Exception:
            connection.logger.exception("an answer could not be sent")
            self.keep_alive = False
        finally:
            connection.tasks.discard(self._task)
            self.response_complete = True
            if not self.keep_alive:
                connection.transport.close()
            connection.on_response_complete()

    async def _send(self, status: int, headers: list[tuple[bytes, bytes]], body: list[bytes]) -> None:
        """Each piece waits until the client has taken those before it, so the answer counts as long as it is here."""
        connection = self._connection
        if (b"connection", b"close") in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append((b"connection", b"close"))
        lines: list[bytes | memoryview] = [STATUS_LINE[status]]
        for name, value in (*connection.server_state.default_headers, *headers):
            lines += name, b": ", value, b"\r\n"
        lines.append(b"\r\n")
        *pieces, last = pieces_of(body)
        if not pieces:
            lines.append(last)
            connection.transport.write_whole(b"".join(lines))  # type: ignore[attr-defined]
            return
        connection.transport.write(b"".join(lines))
        for piece in (*pieces, last):
            if connection.flow.write_paused:
                await connection.flow.drain()
            if self.disconnected:
                return
            connection.transport.write(piece)
