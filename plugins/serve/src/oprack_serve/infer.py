"""One inference request, from its body to its answer, with the times of its stages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

from oprack_serve import answers, protocol
from oprack_serve.errors import RequestError
from oprack_serve.http import Bodies
from oprack_serve.log import JsonLog
from oprack_serve.metrics import Metrics
from oprack_serve.model import Model
from oprack_serve.models import Models
from oprack_serve.scheduler import Job
from oprack_serve.settings import Settings
from oprack_serve.signature import Tensor
from oprack_serve.trace import chrome_trace


class ClientLeftError(Exception):
    """The client closed the connection before it had its answer."""


class _Request:
    """What is known of a request, for its line in the log."""

    def __init__(self, scope: Any) -> None:
        self.headers = {key: value for key, value in reversed(scope["headers"])}
        parameters = scope["path_params"]
        self.name, self.version = parameters["name"], parameters.get("version")
        self.model: Model | None = None
        self.job: Job | None = None
        self.stages: dict[str, tuple[float, float]] = {}
        self.fields: dict[str, Any] = {}

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.stages[name] = start, time.monotonic()


class Inference:
    """Answers inference requests."""

    def __init__(self, settings: Settings, models: Models, metrics: Metrics, bodies: Bodies, log: JsonLog) -> None:
        self._settings, self._models, self._metrics, self._bodies, self._log = settings, models, metrics, bodies, log
        models.on_model = self._observe

    def _observe(self, model: Model) -> None:
        labels = model.name, model.version
        requests = self._metrics.batch_requests.labels(*labels)
        entries = self._metrics.batch_entries.labels(*labels)
        spent = self._metrics.batch_seconds.labels(*labels)

        def on_batch(jobs: list[Job], seconds: float) -> None:
            requests.observe(len(jobs))
            entries.observe(sum(job.size for job in jobs))
            spent.observe(seconds)

        model.lane.on_batch = on_batch

    async def respond(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI application of the route."""
        request, started = _Request(scope), time.monotonic()
        status, pieces, length, error = 500, [b""], None, ""
        try:
            pieces, length = await self._answer(request, receive, started)
            status = 200
        except RequestError as refused:
            status, error = refused.status, str(refused)
        except (ClientLeftError, ConnectionError):
            status, error = 499, "the client left"
        except asyncio.CancelledError:
            status, error = 503, "the server is being stopped"
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
        try:
            if status != 499:
                with request.stage("write"):
                    hidden = status == 500 and request.job is None
                    text = "the server failed; its log says more" if hidden else error
                    await self._send(send, status, pieces, length, text)
        finally:
            self._report(request, status, error, started)

    async def _answer(self, request: _Request, receive: Any, started: float) -> tuple[list[Any], int | None]:
        if self._models.stopping:
            raise RequestError(503, "the server is being stopped")
        request.model = self._models.find(request.name, request.version)
        encoding = request.header(b"content-encoding")
        if encoding not in (None, "identity"):
            raise RequestError(415, f"Content-Encoding {encoding[:40]!r}; bodies are taken as they are")
        with request.stage("read"):
            body = await self._bodies.read(receive, request.header(b"content-length"))
        try:
            # a changed model may have taken its place while the body came; nothing waits from here until it is queued
            model = request.model = self._models.find(request.name, request.version)
            request.fields["bytes_in"] = len(body.data)
            with request.stage("decode"):
                decoded = protocol.decode(
                    model.signature, memoryview(body.data), self._json_length(request), self._settings.limits
                )
            request.fields["id"] = decoded.id
            if decoded.trace and not self._settings.allow_trace:
                raise RequestError(403, "parameter trace: the server was started without --allow-trace")
            seconds = min(self._settings.timeout, decoded.timeout or self._settings.timeout)
            wanted = answers.wanted_outputs(decoded, model.signature)
            job = request.job = Job(decoded.inputs, wanted, started + seconds, decoded.trace)
            model.lane.submit(job)
            outputs = await self._result(job, receive)
            model.record(decoded.inputs)
        finally:
            body.release()
        request.stages["queue"] = job.queued, job.started
        request.stages["run"] = job.started, job.ended
        parameters: dict[str, Any] = {}
        if decoded.trace:
            parameters["trace"] = json.dumps(chrome_trace(request.stages, job))
        with request.stage("encode"):
            return answers.encode(decoded, outputs, model.name, model.version, parameters)

    @staticmethod
    def _json_length(request: _Request) -> int | None:
        text = request.header(b"inference-header-content-length")
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise RequestError(400, f"Inference-Header-Content-Length {text[:40]!r} is no number")
        return int(text)

    @staticmethod
    async def _result(job: Job, receive: Any) -> dict[str, Tensor]:
        """The outputs; the request is taken back when its time is over or its client leaves."""
        left = asyncio.ensure_future(receive())
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + job.deadline - time.monotonic()):
                await asyncio.wait({job.future, left}, return_when=asyncio.FIRST_COMPLETED)
            if not job.future.done():
                raise ClientLeftError
            return job.future.result()
        except TimeoutError:
            raise RequestError(504, "the request was not answered in its time; fewer entries take less") from None
        finally:
            left.cancel()
            job.future.cancel()

    @staticmethod
    async def _send(send: Any, status: int, pieces: list[Any], length: int | None, error: str) -> None:
        headers = [(b"content-type", b"application/json" if length is None else b"application/octet-stream")]
        if length is not None:
            headers.append((b"inference-header-content-length", b"%d" % length))
        if status != 200:
            pieces = [json.dumps({"error": error}).encode()]
            if status in (408, 413):  # what is left of the body is not read
                headers.append((b"connection", b"close"))
            if status == 503:
                headers.append((b"retry-after", b"1"))
        headers.append((b"content-length", b"%d" % sum(len(piece) for piece in pieces)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        last = len(pieces) - 1
        for i, piece in enumerate(pieces):
            await send({"type": "http.response.body", "body": bytes(piece), "more_body": i < last})

    def _report(self, request: _Request, status: int, error: str, started: float) -> None:
        """Metrics and the line of the log; names that no model has are no labels."""
        model, job = request.model, request.job
        labels = (model.name, model.version) if model else ("", "")
        self._metrics.request(labels, status)
        for stage, (start, end) in request.stages.items():
            self._metrics.stage(labels, stage, max(0.0, end - start))
        row: dict[str, Any] = {"model": labels[0] or request.name[:128], "version": labels[1], "status": status}
        row |= request.fields
        row["ms"] = round((time.monotonic() - started) * 1e3, 2)
        row["stages_ms"] = {stage: round((end - start) * 1e3, 2) for stage, (start, end) in request.stages.items()}
        if job is not None and job.batch[0]:
            row["batch"], row["batch_requests"], row["batch_entries"] = job.batch
            row["predictor_ms"] = job.run_ms
        if error:
            row["error"] = error[:2000]
        self._log.soon("request", **row)
