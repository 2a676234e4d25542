"""Inference requests, from their bodies to their answers, with the times of their stages.

A request that is whole when it comes, and whose JSON is short, takes no task: it is decoded and queued (`take`), and
what the lane makes of it is encoded as it comes back (`conclude`). Others are one task (`answer`), which waits for the
body, for the lane, and for what is decoded or encoded beside the event loop. What takes too long is found by
`Inference.sweep`, for all requests at once; timers and tasks of each request cost more than what they watch.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version
from typing import Any

import numpy as np

from oprack_serve import answers
from oprack_serve.calls import (
    LATE,
    Answer,
    Call,
    ClientLeftError,
    HttpCall,
    HttpHead,
    Receive,
    Record,
    Result,
    pieces_of,
)
from oprack_serve.decoding import Decoder
from oprack_serve.errors import RequestError
from oprack_serve.extensions.shared_memory import Regions
from oprack_serve.http import NEVER, Bodies, Body
from oprack_serve.jobs import Job
from oprack_serve.joining import Feed
from oprack_serve.log import GATHER_SECONDS, JsonLog
from oprack_serve.metrics import STAGES, Metrics
from oprack_serve.model import READY, Model
from oprack_serve.models import Models
from oprack_serve.protocol import InferRequest
from oprack_serve.settings import Settings
from oprack_serve.signature import Tensor
from oprack_serve.trace import chrome_trace

WATCH_AFTER = 0.1
"""Seconds after which a client is watched for leaving; most have their answer before."""

MOST_ENDED = 256
STOPPED = "the server is being stopped"

Send = Callable[[Any], Awaitable[None]]


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
        self._ended: list[Record] = []
        models.on_model, metrics.before_reading = self._observe, self._report_ended

    def _observe(self, model: Model) -> None:
        counted = self._metrics.of(model.name, model.version)

        def on_batch(jobs: list[Job], seconds: float) -> None:
            counted.count_batch(len(jobs), jobs[0].batch[2], seconds)
            model.record(jobs[0].feed)  # one of them says what clients send

        model.lane.on_batch = on_batch

    def sweep(self, now: float) -> None:
        """End what is late, and watch the clients of what takes its time."""
        for call in list(self._open):
            if now >= call.due:
                call.expire()
            elif call.job is not None and call.watch is None and not call.told_of_leaving:
                if now - call.job.queued > WATCH_AFTER:
                    call.watch = asyncio.get_running_loop().create_task(call.see_the_client_leave())

    async def close(self) -> None:
        """Report what was answered, end the process that decodes large requests, and forget what clients registered."""
        self._report_ended()
        await self._decoder.close()
        self.regions.forget()
        if self._spans is not None:
            await asyncio.to_thread(self._spans.close)

    async def respond(self, scope: Any, receive: Receive, send: Send) -> None:
        """The ASGI application of the route."""
        path = scope["path_params"]
        head = HttpHead(path["name"], path.get("version"), scope["headers"])
        call = HttpCall(head, scope.get("client"), receive, self._settings.read_timeout)
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

    # A task for a request ---------------------------------------------------------------------------------------------
    async def answer(self, call: Call) -> Answer:
        """The answer to a call, whichever protocol it came by; its bytes count until `end`, which has to follow."""
        self._open.add(call)
        call.task, call.result = asyncio.current_task(), asyncio.get_running_loop().create_future()
        try:
            if self._models.stopping:
                raise RequestError(503, STOPPED)
            if call.name:  # messages of gRPC have it in their bodies
                call.model = self._models.find(call.name, call.version)
            body = call.body = await call.read(self._bodies)
            call.task = None
            call.read_at, call.bytes_in = time.monotonic(), len(body.data)
            call.due = call.started + self._settings.timeout
            if call.large(call.bytes_in):
                self._submit(call, body, *await self._decode_apart(call, body))
            else:
                self._decode(call, body)
            result = await call.result
        except (Exception, asyncio.CancelledError) as error:
            return self.failed(call, error)
        if not isinstance(result, Exception) and call.encodes_long(result):
            return await self.conclude_apart(call, result)
        return self.conclude(call, result)

    async def conclude_apart(self, call: Call, outputs: dict[str, Tensor]) -> Answer:
        """As `conclude`, beside the event loop, for answers that take long to encode."""
        try:
            parameters, start = self._outputs(call, outputs), time.monotonic()
            assert call.body is not None
            call.body.become(sum([tensor.array.nbytes for tensor in outputs.values()]))
            async with self._one_encodes:  # threads share Python's lock: more of them would only delay the loop
                pieces = await asyncio.to_thread(call.encode, outputs, parameters)
            return self._encoded(call, outputs, pieces, start)
        except (Exception, asyncio.CancelledError) as error:
            return self.failed(call, error)

    async def _decode_apart(self, call: Call, body: Body) -> tuple[Model, InferRequest, Feed]:
        """The request, and the model that it is for. Nothing waits from the last look at that until it is queued."""
        start = time.monotonic()
        try:
            while True:
                # a changed one may have taken its place while the body came or was decoded
                model = call.model = self._models.find(call.name, call.version)
                try:
                    async with asyncio.timeout(call.due - time.monotonic()):
                        decoded, feed = await call.decode_apart(model.signature, body, self._decoder, self.regions)
                except TimeoutError:
                    raise RequestError(504, LATE) from None
                if model.state == READY:
                    return model, decoded, feed
        finally:
            call.decode_from, call.decoded_at = start, time.monotonic()

    # No task ----------------------------------------------------------------------------------------------------------
    def take(self, call: Call, data: Any) -> bool:
        """Queue a request whose body is there: `call.finish` is called with what comes of it, for `conclude`.

        Args:
            call: The request.
            data: Its body.

        Returns:
            Whether it was queued. One that takes long to decode was not; `answer` takes it.

        Raises:
            Exception: For `failed`.
        """
        if self._models.stopping:
            raise RequestError(503, STOPPED)
        if call.large(len(data)):
            return False
        self._open.add(call)
        body = call.body = self._bodies.whole(data)
        call.read_at, call.bytes_in = call.started, len(data)
        self._decode(call, body)
        return True

    def conclude(self, call: Call, result: Result) -> Answer:
        """The answer, from what the lane made of the request; for those that do not take long to encode."""
        if isinstance(result, Exception):  # raised here, it would keep the frame that has it, and so the request
            return self.failed(call, result)
        try:
            parameters, start = self._outputs(call, result), time.monotonic()
            return self._encoded(call, result, call.encode(result, parameters), start)
        except Exception as error:
            return self.failed(call, error)

    # Steps of both ----------------------------------------------------------------------------------------------------
    def _decode(self, call: Call, body: Body) -> None:
        """Decode and queue a request that does not take long to decode."""
        call.decode_from = call.read_at
        try:
            # a changed one may have taken its place while the body came
            model = call.model = self._models.find(call.name, call.version)
            decoded, feed = call.decode(model.signature, body, self._settings.limits, self.regions)
        finally:
            call.decoded_at = time.monotonic()
        self._submit(call, body, model, decoded, feed)

    def _submit(self, call: Call, body: Body, model: Model, decoded: InferRequest, feed: Feed) -> None:
        settings = self._settings
        call.decoded = decoded
        if decoded.shared_bytes:
            body.add_size(decoded.shared_bytes)
        if decoded.trace and not settings.allow_trace:
            raise RequestError(403, "parameter trace: the server was started without --allow-trace")
        deadline = call.started + settings.timeout
        call.due = deadline if decoded.timeout is None else min(deadline, call.started + decoded.timeout)
        wanted = decoded.wanted = decoded.wanted or answers.wanted_outputs(decoded, model.signature)
        if model.answer_sizes.known:
            self._expect(call, body, decoded, feed)
        job = Job(feed, wanted, deadline, call.finish, decoded.trace, call.source, call.decoded_at, join=decoded.join)
        call.job = job
        model.lane.submit(job)
        decoded.join = job.join

    def _outputs(self, call: Call, outputs: dict[str, Tensor]) -> dict[str, Any]:
        """Have the outputs be what is encoded; returns parameters of the answer."""
        self._settle(call)
        model, job, decoded = call.model, call.job, call.decoded
        assert model is not None and job is not None and decoded is not None
        model.answer_sizes.learn(model.lane.rule, job.feed, outputs)
        job.feed.clear()  # the memory of the body
        if decoded.classes or decoded.placed:
            answers.finish(decoded, outputs, self.regions, model.options.labels)
        return {"trace": json.dumps(chrome_trace(call.stages(), job))} if decoded.trace else {}

    def _encoded(self, call: Call, outputs: dict[str, Tensor], pieces: list[bytes], start: float) -> Answer:
        call.encode_from, call.encoded_at = start, time.monotonic()
        outputs.clear()  # views of the whole batch, which the request would keep until its client has read the answer
        assert call.body is not None
        size = sum(map(len, pieces))
        call.body.become(size)
        return Answer(200, pieces, size)

    def _settle(self, call: Call) -> None:
        """Nothing more is expected of the lane or of the client."""
        call.due = NEVER
        self._open.discard(call)
        if call.watch is not None:
            call.watch.cancel()
        if call.job is not None and not call.job.finished:
            assert call.model is not None
            call.model.lane.withdraw(call.job)

    def failed(self, call: Call, error: BaseException) -> Answer:
        """The answer to a call of which nothing comes but an error; `end` has to follow."""
        self._settle(call)
        if isinstance(error, RequestError):
            return Answer(error.status, error=str(error))
        if isinstance(error, (ClientLeftError, ConnectionError)):
            return Answer(499, error="the client left")
        if isinstance(error, asyncio.CancelledError):
            return self._cancelled(call)
        return Answer(500, error=f"{type(error).__name__}: {error}", told="the server failed; its log says more")

    def _cancelled(self, call: Call) -> Answer:
        if not call.late:
            status, error = call.when_cancelled
            return Answer(status, error=error)
        if call.task is not None:
            call.task.uncancel()
        return Answer(408, error=f"the body was not there within {self._settings.read_timeout:g} seconds")

    def end(self, call: Call, answer: Answer) -> None:
        """The client has its answer, or has left."""
        call.ended = time.monotonic()
        if call.body is not None:
            call.body.release()
        if self._spans is not None:
            self._spans.record(call, answer.status, answer.error)
        if answer.status != 200:  # not later: it may hold its inputs, which others share
            self._report_failed(call, answer)
            return
        self._ended.append(call.record())
        if len(self._ended) == 1:
            asyncio.get_running_loop().call_later(GATHER_SECONDS, self._report_ended)
        elif len(self._ended) >= MOST_ENDED:
            self._report_ended()

    def _report_ended(self) -> None:
        """Count and log what was answered well since the last time. All at once takes a third of one by one."""
        ended, self._ended = self._ended, []
        if not ended:
            return
        keys, ids, protocols, sizes, batches, run_ms, moments = zip(*ended, strict=True)
        at = np.array(moments).T
        # a request may be taken within the clock's step
        spent = np.maximum(at[_ENDS] - at[_BEGINS], 0.0).T
        times = np.trunc((at[-1] + (time.time() - time.monotonic())) * 1e3)
        for key in dict.fromkeys(keys):
            counted = self._metrics.of(*key)
            own = [i for i, each in enumerate(keys) if each == key]
            counted.count_good(spent[own])
            counted.last_ms = int(times[own[-1]])
        if self._log.all_requests:
            rounded = (np.trunc(spent * 1e5) / 100).tolist()
            rows = zip((times / 1e3).tolist(), keys, ids, protocols, sizes, batches, run_ms, rounded, strict=True)
            self._log.add([_line(*row) for row in rows])
        self._log.flush()

    def _report_failed(self, call: Call, answer: Answer) -> None:
        model, job, decoded = call.model, call.job, call.decoded
        spent = {stage: end - start for stage, (start, end) in call.stages().items()}
        seconds = call.ended - call.started
        self._metrics.of(*(model.key if model else ("", ""))).count_failed(answer.status, seconds, spent)
        rounded = [int(each * 1e5) / 100 for each in (*spent.values(), seconds)]
        batch, run_ms = (job.batch, job.run_ms) if job is not None else ((0, 0, 0), 0.0)
        key, name = model.key if model else (call.name[:128], ""), decoded.id if decoded is not None else None
        at = int(time.time() * 1e3) / 1e3
        line = _line(at, key, name, call.protocol, call.bytes_in, batch, run_ms, rounded, list(spent))
        self._log.add([line | {"status": answer.status, "error": answer.error[:2000]}])
        self._log.flush_soon()

    @staticmethod
    def _expect(call: Call, body: Body, decoded: InferRequest, feed: Feed) -> None:
        """Have the answer count before it is computed. Raises RequestError when there is no room for it."""
        model = call.model
        assert model is not None
        sizes, rule = model.answer_sizes, model.lane.rule
        as_json = [] if call.protocol != "http" else [name for name, binary in decoded.outputs if not binary]
        as_json = [name for name in as_json if name not in decoded.classes and name not in decoded.placed]
        # two bytes for each number at least
        answers.check_json(2 * sizes.expected(rule, feed, as_json).elements)
        body.expect(sizes.expected(rule, feed, decoded.wanted).bytes)


_BEGINS, _ENDS = [0, 2, 4, 5, 7, 8, 0], [1, 3, 5, 6, 8, 9, 9]
"""Of the moments of a record, those at which each of STAGES, and all of it, begins and ends."""


def _line(
    at: float,
    model: tuple[str, str],
    name: str | None,
    protocol: str,
    size: int,
    batch: tuple[int, int, int],
    run_ms: float,
    spent: list[float],
    stages: Iterable[str] = STAGES,
) -> dict[str, Any]:
    """What the log says of a request. spent: milliseconds of those stages, and of all of it."""
    row: dict[str, Any] = {
        "time": at,
        "event": "request",
        "model": model[0],
        "version": model[1],
        "status": 200,
        "bytes_in": size,
        "ms": spent[-1],
        "stages_ms": dict(zip(stages, spent, strict=False)),
    }
    if protocol != "http":
        row["protocol"] = protocol
    if name is not None:
        row["id"] = name
    if batch[0]:
        row["batch"], row["batch_requests"], row["batch_entries"] = batch
        row["predictor_ms"] = run_ms
    return row
