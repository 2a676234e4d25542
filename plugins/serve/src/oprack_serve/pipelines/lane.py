"""Requests to a pipeline on their way through its stages.

A `PipelineLane` is what clients' requests are submitted to, and the queue of the pipeline's functions. A stage that is
a model submits to that model's own lane, so its runs share batches with those of other requests, of whichever pipeline
or client. Values between stages count against the memory that bodies and answers may take.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from oprack_serve.errors import RequestError
from oprack_serve.http import Bodies, Body
from oprack_serve.jobs import Job
from oprack_serve.joining import Feed
from oprack_serve.pipelines import values
from oprack_serve.pipelines.definition import Definition, Stage
from oprack_serve.pipelines.values import Value
from oprack_serve.scheduler import Lane, Scheduler
from oprack_serve.signature import Tensor, TensorSpec

Find = Callable[[str, str | None], Any]
Result = dict[str, Tensor]


class PipelineLane(Lane):
    """The requests of one version of a pipeline.

    Args:
        scheduler, max_queue: As of any lane; so many requests are in the pipeline at most.
        name: Of the pipeline, for errors.
        find: The model of a name and version that serves now; raises RequestError.
        bodies: What counts the bytes of all requests.
    """

    def __init__(self, scheduler: Scheduler, max_queue: int, name: str, find: Find, bodies: Bodies) -> None:
        super().__init__(scheduler, 1, 0.0, max_queue)
        self.name, self.find, self.bodies = name, find, bodies
        self.pipeline: Definition | None = None
        self._courses: dict[Job, asyncio.Task[None]] = {}

    @property
    def drained(self) -> bool:
        """Whether no request is in the pipeline."""
        return not self._courses and super().drained

    def submit(self, job: Job) -> None:
        """Begin with a client's request. Raises RequestError with status 503 when the pipeline is full."""
        if self.closed:
            raise RequestError(503, "this version of the pipeline was taken away; send the request again")
        if len(self._courses) >= self.max_queue:
            raise RequestError(503, f"{len(self._courses)} requests are in this pipeline already; try again later")
        job.started = time.monotonic()
        self._courses[job] = asyncio.get_running_loop().create_task(self._go(job))

    def submit_function(self, job: Job) -> None:
        """Queue the run of a function."""
        super().submit(job)

    def withdraw(self, job: Job) -> None:
        """Take a client's request or the run of a function back."""
        if job in self._courses:
            job.drop()
            self._courses[job].cancel()
        else:
            super().withdraw(job)

    def fail_all(self, error: Exception) -> None:
        """Answer everything with an error, and take nothing more."""
        for job, task in list(self._courses.items()):
            job.finish(error)
            task.cancel()
        super().fail_all(error)

    async def _go(self, job: Job) -> None:
        """The task of a request: it fills the job with outputs or with an error."""
        result: Result | Exception
        held = Body(self.bodies)
        try:
            result = await _Course(self, job, held).run()
        except Exception as error:
            result = error
        finally:
            held.release()
            del self._courses[job]
        job.ended = time.monotonic()
        job.finish(result)


class _Course:
    """One request: its values, and what became of its stages."""

    def __init__(self, lane: PipelineLane, job: Job, held: Body) -> None:
        assert lane.pipeline is not None
        self._lane, self._job, self._held, self._pipeline = lane, job, held, lane.pipeline
        self._values: dict[str, Value] = dict(job.feed)
        self._last_use = self._pipeline.last_use()
        self._events: list[list[Any]] = []

    async def run(self) -> Result:
        """The outputs. Raises RequestError that names the pipeline and the stage."""
        for stage in self._pipeline.stages:
            start = time.monotonic()
            try:
                made = await (self._model(stage) if stage.is_model else self._function(stage))
                self._values = {
                    n: v for n, v in (self._values | made).items() if self._last_use.get(n, 0) > stage.number
                }
                self._held.become(sum(map(values.nbytes, self._values.values())))
            except RequestError as error:
                raise RequestError(error.status, f"pipeline {self._lane.name!r}, {stage}: {error}") from None
            passed = start - self._job.started, time.monotonic() - start
            self._events.append([str(stage), "stage", *(round(seconds * 1e6, 1) for seconds in passed)])
        if self._job.trace:
            self._job.events = self._events
        return {spec.name: self._output(spec) for spec in self._pipeline.signature.outputs}

    def _output(self, spec: TensorSpec) -> Tensor:
        value = self._values[spec.name]
        reason = "a list" if isinstance(value, list) else _misfit(spec, value)
        if isinstance(value, list) or reason:
            text = f"pipeline {self._lane.name!r}: output {spec.name!r} of {self._pipeline.file.name} is {reason}"
            raise RequestError(500, f"{text}; expected {spec.datatype} of shape {list(spec.shape or ())}")
        return value

    async def _function(self, stage: Stage) -> dict[str, Value]:
        feed = values.to_feed({name: self._values[name] for name in stage.inputs})
        (found,) = await self._calls(self._lane, self._lane.submit_function, [feed], [str(stage.number)])
        return values.from_feed(stage.outputs, found)

    async def _model(self, stage: Stage) -> dict[str, Value]:
        """Run the model once, or once for each entry of the lists among its inputs; its outputs are lists then."""
        model = self._find(stage)
        specs, names = model.signature.inputs, [spec.name for spec in model.signature.outputs]
        check_counts(stage, model)
        given = [self._values[name] for name in stage.inputs]
        lengths = {len(value) for value in given if isinstance(value, list)}
        if len(lengths) > 1:
            raise RequestError(500, f"its inputs are lists of {sorted(lengths)} entries; expected one length")
        count = lengths.pop() if lengths else None
        feeds: list[Feed] = []
        for i in range(1 if count is None else count):
            entries = [value[i] if isinstance(value, list) else value for value in given]
            feeds.append({spec.name: _fitting(spec, entry) for spec, entry in zip(specs, entries, strict=True)})
        wanted = names[: len(stage.outputs)]
        found = await self._calls(model.lane, model.lane.submit, feeds, wanted)
        pairs = zip(stage.outputs, wanted, strict=True)
        if count is None:
            return {value: found[0][name] for value, name in pairs}
        return {value: [outputs[name] for outputs in found] for value, name in pairs}

    def _find(self, stage: Stage) -> Any:
        try:
            return self._lane.find(stage.name, stage.version)
        except RequestError as error:
            raise RequestError(503, str(error)) from None

    async def _calls(
        self, lane: Lane, submit: Callable[[Job], None], feeds: list[Feed], outputs: list[str]
    ) -> list[Result]:
        """What a lane makes of each feed. The first error ends all."""
        if not feeds:
            return []
        results: list[Result] = [{} for _ in feeds]
        all_there: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = len(feeds)

        def done(number: int, result: Result | Exception) -> None:
            nonlocal left
            left -= 1
            if isinstance(result, Exception):
                if not all_there.done():
                    all_there.set_exception(result)
                return
            results[number] = result
            if not left and not all_there.done():
                all_there.set_result(None)

        jobs: list[Job] = []
        try:
            for number, feed in enumerate(feeds):
                job = Job(feed, outputs, self._job.deadline, partial(done, number), admitted=True)
                job.source = self._job.source
                jobs.append(job)
                submit(job)
            await all_there
        finally:
            for job in jobs:
                if not job.finished:
                    lane.withdraw(job)
        return results


def check_counts(stage: Stage, model: Any) -> None:
    """Raise RequestError where a stage and its model do not agree in how many tensors go in and come out."""
    inputs, outputs = model.signature.inputs, model.signature.outputs
    if isinstance(model.lane, PipelineLane):
        raise RequestError(500, f"{stage.name!r} is a pipeline; expected a model, as stages of its own are")
    if len(stage.inputs) != len(inputs):
        names = ", ".join(repr(spec.name) for spec in inputs)
        raise RequestError(500, f"it is given {len(stage.inputs)} inputs; the model has {len(inputs)}: {names}")
    if len(stage.outputs) > len(outputs):
        names = ", ".join(repr(spec.name) for spec in outputs)
        raise RequestError(500, f"it has {len(stage.outputs)} outputs; the model has {len(outputs)}: {names}")


def _fitting(spec: TensorSpec, tensor: Tensor) -> Tensor:
    reason = _misfit(spec, tensor)
    if reason:
        raise RequestError(
            500,
            f"input {spec.name!r} is given {reason}; expected {spec.datatype} of shape {list(spec.shape or ())}"
            + (f" with {spec.lod_level} levels of LoD" if spec.lod_level else ""),
        )
    return tensor


def _misfit(spec: TensorSpec, tensor: Tensor) -> str:
    """What a tensor is, where that is not what is declared; "" where it fits."""
    array = tensor.array
    fits = spec.fits(array.shape) and spec.dtype in ("", array.dtype.name)
    if fits and (not spec.lod_level or len(tensor.lod) == spec.lod_level):
        return ""
    name = "BYTES" if array.dtype == object else array.dtype.name
    return f"{name} of shape {list(array.shape)} with {len(tensor.lod)} levels of LoD"
