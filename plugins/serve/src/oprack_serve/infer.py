"""Inference requests, from their bodies to their answers, with the times of their stages.

A request is one task, which waits twice at most: for the body, where that has not come with the head, and for one
future, which the lane fills. What takes too long is found by `Inference.sweep`, for all requests at once; timers and
tasks of each request cost more than what they watch.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from oprack_serve import answers, protocol
from oprack_serve.decoding import Decoder
from oprack_serve.errors import RequestError
from oprack_serve.http import GATHERED, NEVER, Bodies, Body
from oprack_serve.jobs import Job
from oprack_serve.json_data import SLICE, to_json
from oprack_serve.log import JsonLog
from oprack_serve.metrics import Metrics
from oprack_serve.model import READY, Model
from oprack_serve.models import Models
from oprack_serve.settings import Settings
from oprack_serve.signature import Tensor
from oprack_serve.trace import chrome_trace

LATE = "the request was not answered in its time; fewer entries take less"
WATCH_AFTER = 0.1
"""Seconds after which a client is watched for leaving; most have their answer before."""

JSON_AT_ONCE = 64 << 10
"""Bytes of JSON that are decoded in the event loop: five milliseconds at worst."""

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Result = dict[str, Tensor] | Exception


class ClientLeftError(Exception):
    """The client closed the connection before it had its answer."""


class _Request:
    """A request, and what its line in the log will say. due: when it is late, on the clock of time.monotonic. task: the
    one that reads its body, None when that is there. result: what the lane made of it, for the task that waits.
    """

    __slots__ = (
        *("body", "bytes_in", "decoded", "due", "headers", "job", "late", "model", "name", "receive", "result"),
        *("source", "stages", "started", "task", "version", "watch"),
    )

    def __init__(self, scope: Any, receive: Receive, read_timeout: float) -> None:
        self.headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
        self.name: str = scope["path_params"]["name"]
        self.version: str | None = scope["path_params"].get("version")
        self.source = scope.get("client")
        self.receive, self.started = receive, time.monotonic()
        self.due = self.started + read_timeout
        self.task = asyncio.current_task()
        self.result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.watch: asyncio.Task[None] | None = None
        self.late = False
        self.bytes_in = 0
        self.body: Body | None = None
        self.model: Model | None = None
        self.job: Job | None = None
        self.decoded: protocol.InferRequest | None = None
        self.stages: dict[str, tuple[float, float]] = {}

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

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

    async def see_the_client_leave(self) -> None:
        """What ASGI receives behind the body is that the client has left."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.finish(ClientLeftError())


class Inference:
    """Answers inference requests."""

    def __init__(self, settings: Settings, models: Models, metrics: Metrics, bodies: Bodies, log: JsonLog) -> None:
        self._settings, self._models, self._metrics, self._bodies, self._log = settings, models, metrics, bodies, log
        self._open: set[_Request] = set()
        self._decoder = Decoder(settings.limits)
        self._one_encodes = asyncio.Lock()
        models.on_model = self._observe

    def _observe(self, model: Model) -> None:
        counted = self._metrics.of(model.name, model.version)

        def on_batch(jobs: list[Job], seconds: float) -> None:
            counted.batch_requests.observe(len(jobs))
            counted.batch_entries.observe(jobs[0].batch[2])
            counted.batch_seconds.observe(seconds)
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
        """End the process that decodes large requests."""
        await self._decoder.close()

    async def respond(self, scope: Any, receive: Receive, send: Send) -> None:
        """The ASGI application of the route."""
        request = _Request(scope, receive, self._settings.read_timeout)
        self._open.add(request)
        status, pieces, length, error, told = 500, [b""], None, "", ""
        try:
            pieces, length = await self._answer(request)
            status = 200
        except RequestError as refused:
            status, error = refused.status, str(refused)
        except (ClientLeftError, ConnectionError):
            status, error = 499, "the client left"
        except asyncio.CancelledError:
            status, error = self._cancelled(request)
        except Exception as failure:
            error, told = f"{type(failure).__name__}: {failure}", "the server failed; its log says more"
        finally:
            self._open.discard(request)
            if request.watch is not None:
                request.watch.cancel()
        try:
            if status == 200:
                await self._send(request, send, pieces, length)
            elif status != 499:
                await self._refuse(request, send, status, told or error)
        finally:
            if request.body is not None:
                request.body.release()
            self._report(request, status, error)

    def _cancelled(self, request: _Request) -> tuple[int, str]:
        if not request.late:
            return 503, "the server is being stopped"
        if request.task is not None:
            request.task.uncancel()
        return 408, f"the body was not there within {self._settings.read_timeout:g} seconds"

    async def _answer(self, request: _Request) -> tuple[list[bytes], int | None]:
        if self._models.stopping:
            raise RequestError(503, "the server is being stopped")
        request.model = self._models.find(request.name, request.version)
        encoding = request.header(b"content-encoding")
        if encoding not in (None, "identity"):
            raise RequestError(415, f"Content-Encoding {encoding[:40]!r}; bodies are taken as they are")
        request.body = await self._bodies.read(request.receive, request.header(b"content-length"))
        request.task = None
        return await self._run(request, request.body)

    async def _run(self, request: _Request, body: Body) -> tuple[list[bytes], int | None]:
        settings, stages, now = self._settings, request.stages, time.monotonic()
        stages["read"] = request.started, now
        request.bytes_in = len(body.data)
        try:
            model, decoded = await self._decode(request, body.data)
        finally:
            queued = time.monotonic()
            stages["decode"] = now, queued
        request.decoded = decoded
        if decoded.trace and not settings.allow_trace:
            raise RequestError(403, "parameter trace: the server was started without --allow-trace")
        request.due = request.started + min(settings.timeout, decoded.timeout or settings.timeout)
        wanted = answers.wanted_outputs(decoded, model.signature)
        self._expect(body, model, decoded, wanted)
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
        stages["queue"] = job.queued, job.started
        stages["run"] = job.started, job.ended
        parameters: dict[str, Any] = {}
        if decoded.trace:
            parameters["trace"] = json.dumps(chrome_trace(stages, job))
        try:
            pieces, length = await self._encode(decoded, outputs, model, parameters)
        finally:
            stages["encode"] = now, time.monotonic()
        outputs.clear()  # views of the whole batch, which the request would keep until its client has read the answer
        body.become(sum(map(len, pieces)))
        return pieces, length

    @staticmethod
    def _expect(body: Body, model: Model, decoded: protocol.InferRequest, wanted: list[str]) -> None:
        """Have the answer count before it is computed. Raises RequestError when there is no room for it."""
        sizes, rule = model.answer_sizes, model.lane.rule
        as_json = [name for name, binary in decoded.outputs if not binary]
        # two bytes for each number at least
        answers.check_json(2 * sizes.expected(rule, decoded.inputs, as_json).elements)
        body.expect(sizes.expected(rule, decoded.inputs, wanted).bytes)

    async def _decode(self, request: _Request, body: bytes | bytearray) -> tuple[Model, protocol.InferRequest]:
        """The request, and the model that it is for. Nothing waits from the last look at that until it is queued."""
        json_length = _json_length(request)
        request.due = request.started + self._settings.timeout
        while True:
            # a changed one may have taken its place while the body came or was decoded
            model = request.model = self._models.find(request.name, request.version)
            if (len(body) if json_length is None else json_length) <= JSON_AT_ONCE:
                return model, protocol.decode(model.signature, memoryview(body), json_length, self._settings.limits)
            try:
                async with asyncio.timeout(request.due - time.monotonic()):
                    decoded = await self._decoder.decode(model.signature, body, json_length)
            except TimeoutError:
                raise RequestError(504, LATE) from None
            if model.state == READY:
                return model, decoded

    async def _encode(
        self, decoded: protocol.InferRequest, outputs: dict[str, Tensor], model: Model, parameters: dict[str, Any]
    ) -> tuple[list[bytes], int | None]:
        elements = sum(outputs[name].array.size for name, binary in decoded.outputs if not binary and name in outputs)
        given = decoded, outputs, model.name, model.version, parameters
        if elements <= SLICE:
            return answers.encode(*given)
        async with self._one_encodes:  # threads share Python's lock: more of them would only delay the loop
            return await asyncio.to_thread(answers.encode, *given)

    # Answers ----------------------------------------------------------------------------------------------------------
    @staticmethod
    async def _send(request: _Request, send: Send, pieces: list[Any], length: int | None) -> None:
        start = time.monotonic()
        size = sum(map(len, pieces))
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % size)]
        if length is not None:
            headers[0] = (b"content-type", b"application/octet-stream")
            headers.append((b"inference-header-content-length", b"%d" % length))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        rest = b"".join(pieces) if size < GATHERED else b""
        if not rest:
            # Each piece waits until the client has taken those before it, so the answer counts as long as it is here.
            for view in map(memoryview, pieces):
                for at in range(0, len(view), GATHERED):
                    await send({"type": "http.response.body", "body": view[at : at + GATHERED], "more_body": True})
        await send({"type": "http.response.body", "body": rest})
        request.stages["write"] = start, time.monotonic()

    @staticmethod
    async def _refuse(request: _Request, send: Send, status: int, error: str) -> None:
        body = to_json({"error": error}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        # what is left of the body is not read; or it may never come, as the client awaits its invitation
        if status in (408, 413) or ("read" not in request.stages and b"expect" in request.headers):
            headers.append((b"connection", b"close"))
        if status == 503:
            headers.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _report(self, request: _Request, status: int, error: str) -> None:
        """Metrics and the line of the log; names that no model has are no labels."""
        model, job = request.model, request.job
        name, version = (model.name, model.version) if model else ("", "")
        counted = self._metrics.of(name, version)
        counted.statuses[status] += 1
        spent = {stage: max(0.0, end - start) for stage, (start, end) in request.stages.items()}
        for stage, seconds in spent.items():
            counted.stages[stage].observe(seconds)
        if status == 200 and not self._log.all_requests:
            return
        row: dict[str, Any] = {"model": name or request.name[:128], "version": version, "status": status}
        row["bytes_in"] = request.bytes_in
        if request.decoded is not None:
            row["id"] = request.decoded.id
        row["ms"] = round((time.monotonic() - request.started) * 1e3, 2)
        row["stages_ms"] = {stage: round(seconds * 1e3, 2) for stage, seconds in spent.items()}
        if job is not None and job.batch[0]:
            row["batch"], row["batch_requests"], row["batch_entries"] = job.batch
            row["predictor_ms"] = job.run_ms
        if error:
            row["error"] = error[:2000]
        self._log.soon("request", **row)


def _json_length(request: _Request) -> int | None:
    text = request.header(b"inference-header-content-length")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise RequestError(400, f"Inference-Header-Content-Length {text[:40]!r} is no number")
    return int(text)
