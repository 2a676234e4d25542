"""Inference requests, from their bodies to their answers, with the times of their stages.

A request is one task, which waits twice at most: for the body, where that has not come with the head, and for one
future, which the lane fills. What takes too long is found by `Inference.sweep`, for all requests at once; timers and
tasks of each request cost more than what they watch.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from oprack_serve import answers, protocol
from oprack_serve.decoding import Decoder
from oprack_serve.errors import RequestError
from oprack_serve.extensions import compression
from oprack_serve.extensions.shared_memory import Regions
from oprack_serve.http import GATHERED, NEVER, Bodies, Body
from oprack_serve.jobs import Job
from oprack_serve.json_data import SLICE, to_json
from oprack_serve.log import JsonLog
from oprack_serve.metrics import Metrics
from oprack_serve.model import READY, Model
from oprack_serve.models import Models
from oprack_serve.protocol import InferRequest, Limits
from oprack_serve.settings import Settings
from oprack_serve.signature import Signature, Tensor
from oprack_serve.trace import chrome_trace

LATE = "the request was not answered in its time; fewer entries take less"
TRACE_CONTEXT = ("traceparent", "tracestate")
WATCH_AFTER = 0.1
"""Seconds after which a client is watched for leaving; most have their answer before."""

JSON_AT_ONCE = 64 << 10
"""Bytes of JSON that are decoded in the event loop: five milliseconds at worst."""

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Result = dict[str, Tensor] | Exception


class ClientLeftError(Exception):
    """The client closed the connection before it had its answer."""


@dataclass
class Answer:
    """What a call is answered with: pieces of the answer, or the error. told: what the client hears instead of it."""

    status: int
    pieces: list[bytes] = field(default_factory=list)
    error: str = ""
    told: str = ""


class Call:
    """A request for inference, and what its line in the log will say; a subclass for each protocol.

    name, version: of the model, as the client wrote them. source: the client. due: when it is late, on the clock of
    time.monotonic. task: the one that reads its body, None when that is there. late: whether the body was not there in
    time. result: what the lane made of it, for the task that waits. stages: start and end of each, by name.
    """

    __slots__ = (
        *("body", "bytes_in", "decoded", "due", "job", "late", "model", "name", "result", "source"),
        *("stages", "started", "task", "version", "watch"),
    )
    protocol = "http"
    when_cancelled = (503, "the server is being stopped")

    def __init__(self, name: str, version: str | None, source: Any, read_timeout: float) -> None:
        self.name, self.version, self.source = name, version, source
        self.started = time.monotonic()
        self.due = self.started + read_timeout
        self.task = asyncio.current_task()
        self.result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.watch: asyncio.Task[None] | None = None
        self.late = False
        self.bytes_in = 0
        self.body: Body | None = None
        self.model: Model | None = None
        self.job: Job | None = None
        self.decoded: InferRequest | None = None
        self.stages: dict[str, tuple[float, float]] = {}

    def finish(self, result: Result) -> None:
        """Have the task go on, unless it does already."""
        if not self.result.done():
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

    def large(self, body: Body) -> bool:
        """Whether it takes so long to decode that the event loop is not to wait for it."""
        raise NotImplementedError

    def decode(self, signature: Signature, body: Body, limits: Limits, regions: Regions) -> InferRequest:
        """The request in the body. Raises RequestError."""
        raise NotImplementedError

    async def decode_apart(self, signature: Signature, body: Body, decoder: Decoder, regions: Regions) -> InferRequest:
        """The same for large requests, beside the event loop."""
        raise NotImplementedError

    def encodes_long(self, outputs: dict[str, Tensor]) -> bool:
        """Whether it takes so long to encode the answer that the event loop is not to wait for it."""
        raise NotImplementedError

    def encode(self, outputs: dict[str, Tensor], parameters: dict[str, Any]) -> list[bytes]:
        """Pieces of the answer."""
        raise NotImplementedError


class HttpCall(Call):
    """A request over HTTP."""

    __slots__ = ("compress", "headers", "json_length", "receive")

    def __init__(
        self,
        name: str,
        version: str | None,
        source: Any,
        headers: list[tuple[bytes, bytes]],
        receive: Receive,
        read_timeout: float,
    ) -> None:
        super().__init__(name, version, source, read_timeout)
        self.headers: dict[bytes, bytes] = dict(reversed(headers))
        self.receive = receive
        self.compress = compression.chosen(self.header(b"accept-encoding"))
        """How the answer is compressed, "" where it is not."""
        self.json_length: int | None = None
        """Of the body, then of the answer; None where there is nothing but JSON."""

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def trace_context(self) -> dict[str, str]:
        return {name: text for name in TRACE_CONTEXT if (text := self.header(name.encode())) is not None}

    async def see_the_client_leave(self) -> None:
        """What ASGI receives behind the body is that the client has left."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.finish(ClientLeftError())

    async def read(self, bodies: Bodies) -> Body:
        body = await bodies.read(self.receive, self.header(b"content-length"))
        encoding = self.header(b"content-encoding")
        if encoding not in (None, "identity"):
            try:
                most = bodies.max_body
                body.become_data(await asyncio.to_thread(compression.decompressed, body.data, encoding, most))
            except BaseException:
                body.release()
                raise
        return body

    def large(self, body: Body) -> bool:
        self.json_length = _json_length(self)
        return (len(body.data) if self.json_length is None else self.json_length) > JSON_AT_ONCE

    def decode(self, signature: Signature, body: Body, limits: Limits, regions: Regions) -> InferRequest:
        return protocol.decode(signature, memoryview(body.data), self.json_length, limits, regions)

    async def decode_apart(self, signature: Signature, body: Body, decoder: Decoder, regions: Regions) -> InferRequest:
        return await decoder.decode(signature, body.data, self.json_length, regions)

    def encodes_long(self, outputs: dict[str, Tensor]) -> bool:
        assert self.decoded is not None
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
        elif answer.status in (408, 413) or ("read" not in self.stages and b"expect" in self.headers):
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


def _spans(url: str | None) -> Any:
    """What makes spans of requests, None where nobody wants them."""
    if not url:
        return None
    from oprack_serve.telemetry.spans import Spans

    return Spans(url, version("oprack-serve"))


class Inference:
    """Answers inference requests."""

    def __init__(self, settings: Settings, models: Models, metrics: Metrics, bodies: Bodies, log: JsonLog) -> None:
        self._settings, self._models, self._metrics, self._bodies, self._log = settings, models, metrics, bodies, log
        self._open: set[Call] = set()
        self._decoder = Decoder(settings.limits)
        self._one_encodes = asyncio.Lock()
        self.regions = Regions(settings.shared_memory)
        self._spans = _spans(settings.otlp)
        models.on_model = self._observe

    def _observe(self, model: Model) -> None:
        counted = self._metrics.of(model.name, model.version)

        def on_batch(jobs: list[Job], seconds: float) -> None:
            counted.count_batch(len(jobs), jobs[0].batch[2], seconds)
            model.record(jobs[0].feed)  # one of them says what clients send

        model.lane.on_batch = on_batch

    def sweep(self, now: float) -> None:
        """End what is late, and watch the clients of what takes its time."""
        for request in self._open:
            if now >= request.due:
                request.expire()
            elif request.job is not None and request.watch is None and now - request.job.queued > WATCH_AFTER:
                request.watch = asyncio.get_running_loop().create_task(request.see_the_client_leave())

    async def close(self) -> None:
        """End the process that decodes large requests, and forget what clients registered."""
        await self._decoder.close()
        self.regions.forget()
        if self._spans is not None:
            await asyncio.to_thread(self._spans.close)

    async def respond(self, scope: Any, receive: Receive, send: Send) -> None:
        """The ASGI application of the route."""
        path, headers = scope["path_params"], scope["headers"]
        arguments = path["name"], path.get("version"), scope.get("client"), headers
        call = HttpCall(*arguments, receive, self._settings.read_timeout)
        answer = await self.answer(call)
        try:
            if answer.status != 499:
                headers, body = call.told(answer)
                await send({"type": "http.response.start", "status": answer.status, "headers": headers})
                # each piece waits until the client has taken those before it: the answer counts as long as it is here
                for piece in pieces_of(body):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        finally:
            self.end(call, answer)

    async def answer(self, call: Call) -> Answer:
        """The answer to a call, whichever protocol it came by; its bytes count until `end`, which has to follow."""
        self._open.add(call)
        answer = Answer(500)
        try:
            answer = Answer(200, await self._answer(call))
        except RequestError as refused:
            answer = Answer(refused.status, error=str(refused))
        except (ClientLeftError, ConnectionError):
            answer = Answer(499, error="the client left")
        except asyncio.CancelledError:
            answer = self._cancelled(call)
        except Exception as failure:
            text = f"{type(failure).__name__}: {failure}"
            answer = Answer(500, error=text, told="the server failed; its log says more")
        finally:
            self._open.discard(call)
            if call.watch is not None:
                call.watch.cancel()
        return answer

    def end(self, call: Call, answer: Answer) -> None:
        """The client has its answer, or has left."""
        if answer.status == 200:
            call.stages["write"] = call.stages["encode"][1], time.monotonic()
        if call.body is not None:
            call.body.release()
        self._report(call, answer.status, answer.error)
        if self._spans is not None:
            self._spans.record(call, answer.status, answer.error)

    def _cancelled(self, call: Call) -> Answer:
        if not call.late:
            status, error = call.when_cancelled
            return Answer(status, error=error)
        if call.task is not None:
            call.task.uncancel()
        return Answer(408, error=f"the body was not there within {self._settings.read_timeout:g} seconds")

    async def _answer(self, call: Call) -> list[bytes]:
        if self._models.stopping:
            raise RequestError(503, "the server is being stopped")
        if call.name:  # messages of gRPC have it in their bodies
            call.model = self._models.find(call.name, call.version)
        call.body = await call.read(self._bodies)
        call.task = None
        return await self._run(call, call.body)

    async def _run(self, request: Call, body: Body) -> list[bytes]:
        settings, stages, now = self._settings, request.stages, time.monotonic()
        stages["read"] = request.started, now
        request.bytes_in = len(body.data)
        large = request.large(body)
        request.due = request.started + settings.timeout
        try:
            if large:
                model, decoded = await self._decode_apart(request, body)
            else:
                model = request.model = self._models.find(request.name, request.version)
                decoded = request.decode(model.signature, body, settings.limits, self.regions)
        finally:
            queued = time.monotonic()
            stages["decode"] = now, queued
        request.decoded = decoded
        body.add_size(decoded.shared_bytes)
        if decoded.trace and not settings.allow_trace:
            raise RequestError(403, "parameter trace: the server was started without --allow-trace")
        request.due = request.started + min(settings.timeout, decoded.timeout or settings.timeout)
        wanted = answers.wanted_outputs(decoded, model.signature)
        self._expect(request, body, decoded, wanted)
        deadline = request.started + settings.timeout
        job = Job(decoded.inputs, wanted, deadline, request.finish, decoded.trace, source=request.source, queued=queued)
        request.job = job
        try:
            model.lane.submit(job)
            outputs = await request.result
            if isinstance(outputs, Exception):
                raise outputs
        finally:
            request.due = NEVER
            if not job.finished:
                model.lane.withdraw(job)
        model.answer_sizes.learn(model.lane.rule, decoded.inputs, outputs)
        decoded.inputs.clear()  # the memory of the body
        body.become(sum(tensor.array.nbytes for tensor in outputs.values()))
        now = time.monotonic()
        answers.finish(decoded, outputs, self.regions)
        stages["queue"] = job.queued, job.started
        stages["run"] = job.started, job.ended
        parameters: dict[str, Any] = {}
        if decoded.trace:
            parameters["trace"] = json.dumps(chrome_trace(stages, job))
        try:
            if request.encodes_long(outputs):
                async with self._one_encodes:  # threads share Python's lock: more of them would only delay the loop
                    pieces = await asyncio.to_thread(request.encode, outputs, parameters)
            else:
                pieces = request.encode(outputs, parameters)
        finally:
            stages["encode"] = now, time.monotonic()
        outputs.clear()  # views of the whole batch, which the request would keep until its client has read the answer
        body.become(sum(map(len, pieces)))
        return pieces

    @staticmethod
    def _expect(call: Call, body: Body, decoded: InferRequest, wanted: list[str]) -> None:
        """Have the answer count before it is computed. Raises RequestError when there is no room for it."""
        model = call.model
        assert model is not None
        sizes, rule = model.answer_sizes, model.lane.rule
        if not sizes.known:
            return
        as_json = [] if call.protocol != "http" else [name for name, binary in decoded.outputs if not binary]
        as_json = [name for name in as_json if name not in decoded.classes and name not in decoded.placed]
        # two bytes for each number at least
        answers.check_json(2 * sizes.expected(rule, decoded.inputs, as_json).elements)
        body.expect(sizes.expected(rule, decoded.inputs, wanted).bytes)

    async def _decode_apart(self, call: Call, body: Body) -> tuple[Model, InferRequest]:
        """The request, and the model that it is for. Nothing waits from the last look at that until it is queued."""
        while True:
            # a changed one may have taken its place while the body came or was decoded
            model = call.model = self._models.find(call.name, call.version)
            try:
                async with asyncio.timeout(call.due - time.monotonic()):
                    decoded = await call.decode_apart(model.signature, body, self._decoder, self.regions)
            except TimeoutError:
                raise RequestError(504, LATE) from None
            if model.state == READY:
                return model, decoded

    def _report(self, request: Call, status: int, error: str) -> None:
        """Metrics and the line of the log; names that no model has are no labels."""
        model, job = request.model, request.job
        name, version = (model.name, model.version) if model else ("", "")
        spent = {stage: end - start if end > start else 0.0 for stage, (start, end) in request.stages.items()}
        seconds = time.monotonic() - request.started
        self._metrics.of(name, version).count_request(status, seconds, spent)
        if status == 200 and not self._log.all_requests:
            return
        row: dict[str, Any] = {"model": name or request.name[:128], "version": version, "status": status}
        row["bytes_in"] = request.bytes_in
        if request.protocol != "http":
            row["protocol"] = request.protocol
        if request.decoded is not None:
            row["id"] = request.decoded.id
        row["ms"] = _ms(seconds)
        row["stages_ms"] = {stage: _ms(seconds) for stage, seconds in spent.items()}
        if job is not None and job.batch[0]:
            row["batch"], row["batch_requests"], row["batch_entries"] = job.batch
            row["predictor_ms"] = job.run_ms
        if error:
            row["error"] = error[:2000]
        self._log.soon("request", **row)


def _ms(seconds: float) -> float:
    """Milliseconds with two digits; `round` takes four times as long."""
    return int(seconds * 1e5) / 100


def _json_length(request: HttpCall) -> int | None:
    text = request.header(b"inference-header-content-length")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise RequestError(400, f"Inference-Header-Content-Length {text[:40]!r} is no number")
    return int(text)
