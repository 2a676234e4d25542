"""A request for inference as its protocol has it: how it is read, decoded and answered.

`oprack_serve.infer` takes calls from their bodies to their answers, whichever protocol they came by.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oprack_serve import answers, protocol
from oprack_serve.decoding import Decoder
from oprack_serve.errors import RequestError
from oprack_serve.extensions import compression
from oprack_serve.extensions.shared_memory import Regions
from oprack_serve.http import GATHERED, NEVER, Bodies, Body
from oprack_serve.jobs import Job
from oprack_serve.json_data import SLICE, to_json
from oprack_serve.protocol import Decoded, InferRequest, Limits
from oprack_serve.signature import Signature, Tensor

if TYPE_CHECKING:
    from oprack_serve.model import Model

LATE = "the request was not answered in its time; fewer entries take less"
TRACE_CONTEXT = ("traceparent", "tracestate")

JSON_AT_ONCE = 64 << 10
"""Bytes of JSON that are decoded in the event loop: five milliseconds at worst."""

Receive = Callable[[], Awaitable[Any]]
Result = dict[str, Tensor] | Exception
Record = tuple[tuple[str, str], str, str, int, tuple[int, int, int], float, tuple[float, ...]]
"""Of a call that was answered well: name and version of the model, id, protocol and bytes; its batch, and milliseconds
in the predictor; and when it began, was read, decoded (from, to), queued, run (from, to), encoded (from, to), written.
"""


class ClientLeftError(Exception):
    """The client closed the connection before it had its answer."""


@dataclass(slots=True)
class Answer:
    """What a call is answered with.

    pieces, size: of the answer, and their bytes. error: in the place of an answer. told: what the client hears instead
    of the error.
    """

    status: int
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    error: str = ""
    told: str = ""


class Call:
    """A request for inference, and what its line in the log will say; a subclass for each protocol.

    name, version: of the model, as the client wrote them. source: the client. due: when it is late, on the clock of
    time.monotonic. task: the one that reads its body, None when that is there. late: whether the body was not there in
    time. result: what the lane made of it, where a task waits for that. started, read_at, decode_from, decoded_at,
    encode_from, encoded_at, ended: moments on that clock, 0 for those that have not come.
    """

    protocol = "http"
    when_cancelled = (503, "the server is being stopped")
    told_of_leaving = False
    """Whether it ends by itself when the client leaves, so that nobody need watch for that."""

    # what most requests never set, and what each sets later, costs nothing when one begins
    task: asyncio.Task[Any] | None = None
    result: asyncio.Future[Result] | None = None
    watch: asyncio.Task[None] | None = None
    late = False
    bytes_in = 0
    body: Body | None = None
    model: Model | None = None
    job: Job | None = None
    decoded: InferRequest | None = None
    read_at = decode_from = decoded_at = encode_from = encoded_at = ended = 0.0

    def __init__(self, name: str, version: str | None, source: Any, read_timeout: float) -> None:
        self.name, self.version, self.source = name, version, source
        self.started = started = time.monotonic()
        self.due = started + read_timeout

    def record(self) -> Record:
        """What is counted and logged of a call that was answered well, and the call itself need not wait for."""
        model, job, decoded = self.model, self.job, self.decoded
        assert model is not None and job is not None and decoded is not None
        taken = self.started, self.read_at, self.decode_from, self.decoded_at
        run = job.queued, job.started, job.ended
        answered = self.encode_from, self.encoded_at, self.ended
        return model.key, decoded.id, self.protocol, self.bytes_in, job.batch, job.run_ms, taken + run + answered

    def stages(self) -> dict[str, tuple[float, float]]:
        """Start and end of each stage that the request has had, by name."""
        job = self.job
        queued, run, ran = (job.queued, job.started, job.ended) if job is not None and job.ended else (0.0, 0.0, 0.0)
        encoded = self.encoded_at
        rows = (
            ("read", self.started, self.read_at),
            ("decode", self.decode_from, self.decoded_at),
            ("queue", queued, run),
            ("run", run, ran),
            ("encode", self.encode_from, encoded),
            ("write", encoded, self.ended if encoded else 0.0),
        )
        return {name: (start, max(start, end)) for name, start, end in rows if end}

    def finish(self, result: Result) -> None:
        """Have the task that waits for `result` go on, unless it does already."""
        if self.result is not None and not self.result.done():
            self.result.set_result(result)

    def expire(self) -> None:
        """The moment `due` has come."""
        self.due = NEVER
        if self.task is not None:
            self.late = True
            self.task.cancel()
        else:
            self.finish(RequestError(504, LATE))

    # What the protocols do, each in its way
    def trace_context(self) -> dict[str, str]:
        """What the client says of the trace that the request is part of: traceparent and tracestate of the W3C."""
        raise NotImplementedError

    async def read(self, bodies: Bodies) -> Body:
        """The body; raises RequestError for what can't be one, and ConnectionError when the client leaves."""
        raise NotImplementedError

    async def see_the_client_leave(self) -> None:
        """Wait until the client has left, and say so by `finish`."""
        raise NotImplementedError

    def large(self, size: int) -> bool:
        """Whether a body of that size takes so long to decode that the event loop is not to wait for it.

        Raises RequestError for what can't be a body.
        """
        raise NotImplementedError

    def decode(self, signature: Signature, body: Body, limits: Limits, regions: Regions) -> Decoded:
        """The request in the body, and its inputs. Raises RequestError."""
        raise NotImplementedError

    async def decode_apart(self, signature: Signature, body: Body, decoder: Decoder, regions: Regions) -> Decoded:
        """The same for large requests, beside the event loop."""
        raise NotImplementedError

    def encodes_long(self, outputs: dict[str, Tensor]) -> bool:
        """Whether it takes so long to encode the answer that the event loop is not to wait for it."""
        raise NotImplementedError

    def encode(self, outputs: dict[str, Tensor], parameters: dict[str, Any]) -> list[bytes]:
        """Pieces of the answer."""
        raise NotImplementedError


class HttpHead:
    """The head of a request for inference. Those of a client are mostly the same, so one may be that of many requests.

    Args:
        name: Of the model.
        version: Of the model, None for the newest.
        headers: Names in lower case, and values.

    Attributes:
        headers: By name; the first of several.
        compress: How the answer is compressed, "" where it is not.
    """

    def __init__(self, name: str, version: str | None, headers: list[tuple[bytes, bytes]]) -> None:
        self.name, self.version = name, version
        self.headers: dict[bytes, bytes] = dict(reversed(headers))
        self.compress = compression.chosen(self.header(b"accept-encoding"))

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    @cached_property
    def json_length(self) -> int | None:
        """Bytes of JSON that the body begins with, None where it is JSON alone. Raises RequestError."""
        text = self.header(b"inference-header-content-length")
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise RequestError(400, f"Inference-Header-Content-Length {text[:40]!r} is no number")
        return int(text)


class HttpCall(Call):
    """A request over HTTP, whose body comes by `receive` of ASGI."""

    json_length: int | None = None
    """Of the body, then of the answer; None where there is nothing but JSON."""

    def __init__(self, head: HttpHead, source: Any, receive: Receive | None, read_timeout: float) -> None:
        super().__init__(head.name, head.version, source, read_timeout)
        self.head, self.receive, self.compress = head, receive, head.compress

    def trace_context(self) -> dict[str, str]:
        return {name: text for name in TRACE_CONTEXT if (text := self.head.header(name.encode())) is not None}

    async def see_the_client_leave(self) -> None:
        """What ASGI receives behind the body is that the client has left."""
        assert self.receive is not None
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.finish(ClientLeftError())

    async def read(self, bodies: Bodies) -> Body:
        assert self.receive is not None
        body = await bodies.read(self.receive, self.head.header(b"content-length"))
        encoding = self.head.header(b"content-encoding")
        if encoding not in (None, "identity"):
            try:
                most = bodies.max_body
                body.become_data(await asyncio.to_thread(compression.decompressed, body.data, encoding, most))
            except BaseException:
                body.release()
                raise
        return body

    def large(self, size: int) -> bool:
        self.json_length = self.head.json_length
        return (size if self.json_length is None else self.json_length) > JSON_AT_ONCE

    def decode(self, signature: Signature, body: Body, limits: Limits, regions: Regions) -> Decoded:
        assert self.model is not None
        known = self.model.known_requests
        data = body.data if isinstance(body.data, memoryview) else memoryview(body.data)
        return protocol.decode(signature, data, self.json_length, limits, regions, known)

    async def decode_apart(self, signature: Signature, body: Body, decoder: Decoder, regions: Regions) -> Decoded:
        return await decoder.decode(signature, body.data, self.json_length, regions)

    def encodes_long(self, outputs: dict[str, Tensor]) -> bool:
        assert self.decoded is not None
        if self.decoded.answer is not None and not self.compress:
            return False  # binary data
        size = 0
        for name, binary in self.decoded.outputs:
            if (self.compress or not binary) and name in outputs:
                size += outputs[name].array.size
        return size > SLICE

    def encode(self, outputs: dict[str, Tensor], parameters: dict[str, Any]) -> list[bytes]:
        assert self.decoded is not None and self.model is not None
        model = self.model
        pieces, self.json_length = answers.encode(self.decoded, outputs, model.name, model.version, parameters)
        if self.compress and sum(map(len, pieces)) >= compression.LEAST:
            return [compression.compressed(pieces, self.compress)]
        self.compress = ""
        return pieces

    def known_headers(self, answer: Answer) -> bytes:
        """The lines of `told`, where they were made before: of an answer in binary data whose shapes are known."""
        known = self.decoded.answer if self.decoded is not None else None
        if known is None or answer.status != 200 or answer.pieces[0] is not known.text:
            return b""
        if not known.headers:
            known.headers = b"".join([b"%b: %b\r\n" % pair for pair in self.told(answer)[0]])
        return known.headers

    def told(self, answer: Answer) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """The headers and the pieces of the body that the client gets."""
        pieces = answer.pieces if answer.status == 200 else [to_json({"error": answer.told or answer.error})]
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % sum(map(len, pieces)))]
        if answer.status == 200:
            if self.json_length is not None:
                headers[0] = (b"content-type", b"application/octet-stream")
                headers.append((b"inference-header-content-length", b"%d" % self.json_length))
            if self.compress:
                headers.append((b"content-encoding", self.compress.encode()))
        # what is left of the body is not read; or it may never come, as the client awaits its invitation
        elif answer.status in (408, 413) or (not self.read_at and b"expect" in self.head.headers):
            headers.append((b"connection", b"close"))
        if answer.status == 503:
            headers.append((b"retry-after", b"1"))
        return headers, pieces


def pieces_of(body: list[bytes]) -> Iterator[bytes | memoryview]:
    """What is sent at once, one after the other; the last may be empty."""
    if sum(map(len, body)) < GATHERED:
        yield b"".join(body)
        return
    for piece in body:
        view = memoryview(piece)
        for at in range(0, len(view), GATHERED):
            yield view[at : at + GATHERED]
