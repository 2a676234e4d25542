"""Which requests run together, where, and when: a queue for each model, and a fair choice between models.

A `Lane` is the queue of one version of a model with its workers. Requests of one `join_key` wait together until they
fill a batch, or the oldest has waited as long as it may; one that comes alone, after one that ran alone, does not wait.
At most `slots` batches run at once; the next slot goes to the model that has had the least time so far, so that a busy
model can't starve another.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from oprack_serve.errors import RequestError, WorkerLostError
from oprack_serve.joining import Feed, JoinRule, entries, join_key
from oprack_serve.signature import Tensor


class WorkerHandle(Protocol):
    """What a lane needs of a worker."""

    alive: bool
    number: int

    async def run(self, rule: JoinRule, jobs: list[Job], trace: bool) -> BatchResult:
        """Run the requests together. Raises WorkerLostError."""

    def kill(self) -> None:
        """End it while it runs."""


@dataclass
class BatchResult:
    """Of each request its outputs or error; milliseconds in the predictor; events of the ops where they are wanted."""

    results: list[dict[str, Tensor] | RequestError]
    run_ms: float
    trace: list[Any] | None = None


@dataclass(eq=False)
class Job:
    """A request on its way through a lane; `future` gets the outputs."""

    feed: Feed
    outputs: list[str]
    deadline: float
    trace: bool = False
    key: Any = None
    size: int = 1
    queued: float = field(default_factory=time.monotonic)
    started: float = 0.0
    ended: float = 0.0
    lost: int = 0
    alone: bool = False
    batch: tuple[int, int, int] = (0, 0, 0)
    run_ms: float = 0.0
    events: list[Any] | None = None
    future: asyncio.Future[dict[str, Tensor]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def fail(self, error: Exception) -> None:
        """Answer with an error, unless it was answered or the client has gone."""
        if not self.future.done():
            self.future.set_exception(error)


class Lane:
    """The queue of one version of a model."""

    def __init__(self, scheduler: Scheduler, max_batch: int, max_delay: float, max_queue: int) -> None:
        self.scheduler = scheduler
        self.max_batch, self.max_delay, self.max_queue = max_batch, max_delay, max_queue
        self.rule = JoinRule(reason="not loaded yet")
        self.idle: list[WorkerHandle] = []
        self.time_used = 0.0
        self.running = 0
        self.closed = False
        self.on_batch: Callable[[list[Job], float], None] = lambda jobs, seconds: None
        self._groups: dict[Any, deque[Job]] = {}
        self._waiting = 0
        self._single = 0
        self._last = 0

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return self._waiting

    @property
    def drained(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return not self._waiting and not self.running

    def submit(self, job: Job) -> None:
        """Queue a request. Raises RequestError with status 503 when the queue is full."""
        if self.closed:
            raise RequestError(503, "this version of the model was taken away; send the request again")
        if self._waiting >= self.max_queue:
            raise RequestError(503, f"{self._waiting} requests wait for this model already; try again later")
        if not self._waiting and not self.running:
            self.time_used = max(self.time_used, self.scheduler.least_time())
        self._queue(job)
        job.future.add_done_callback(lambda _: self._forget(job))
        self.scheduler.pump()

    def _queue(self, job: Job) -> None:
        key = join_key(job.feed) if self.rule.joins and not job.alone and not job.trace and self.max_batch > 1 else None
        if key is None:
            self._single += 1
            key = self._single
        job.key, job.size = key, entries(job.feed) or 1
        self._groups.setdefault(key, deque()).append(job)
        self._waiting += 1

    def _forget(self, job: Job) -> None:
        """A request that was answered while it waited, by a timeout or since its client left, runs no more."""
        group = self._groups.get(job.key)
        if group is not None and job in group:
            group.remove(job)
            self._waiting -= 1
            if not group:
                del self._groups[job.key]

    def requeue(self, job: Job) -> None:
        """Queue a request again, whose worker was lost, unless it was answered meanwhile."""
        if not job.future.done():
            self._queue(job)

    def ready_at(self, now: float) -> float | None:
        """When the next batch may start: now or before, or later; None when nothing waits or no worker is free."""
        if not self._groups or not self.idle:
            return None
        return min(self._group_ready(key, group, now) for key, group in self._groups.items())

    def _group_ready(self, key: Any, group: deque[Job], now: float) -> float:
        if isinstance(key, int) or sum(job.size for job in group) >= self.max_batch:
            return now
        company = self._last > 1 or len(group) > 1 or self.running
        return group[0].queued + self.max_delay if company else now

    def take(self, now: float) -> list[Job]:
        """The batch to run next, of the group whose oldest request has waited longest."""
        ready = [g for key, g in self._groups.items() if self._group_ready(key, g, now) <= now]
        group = min(ready, key=lambda g: g[0].queued)
        batch, size = [group[0]], group[0].size
        for job in list(group)[1:]:
            if size + job.size > self.max_batch:
                break
            batch.append(job)
            size += job.size
        for _ in batch:
            group.popleft()
        self._last = len(batch)
        self._waiting -= len(batch)
        if not group:
            del self._groups[batch[0].key]
        return batch

    def fail_all(self, error: Exception) -> None:
        """Answer everything that waits with an error, and take nothing more."""
        self.closed = True
        for group in list(self._groups.values()):
            for job in list(group):
                job.fail(error)


class Scheduler:
    """Runs batches of all lanes, at most `slots` at once."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self.lanes: list[Lane] = []
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._batches = 0

    def least_time(self) -> float:
        """The least time that a lane with work has had: where one that had none starts."""
        return min((lane.time_used for lane in self.lanes if not lane.drained), default=0.0)

    def pump(self) -> None:
        """Start whatever can start now, and come back when more can."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = time.monotonic()
        while self._slots:
            times = [(lane, lane.ready_at(now)) for lane in self.lanes]
            ready = [lane for lane, at in times if at is not None and at <= now]
            if not ready:
                later = [at for _, at in times if at is not None]
                if later:
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(max(0.0, min(later) - now), self.pump)
                return
            lane = min(ready, key=lambda lane: lane.time_used)
            self._start(lane, lane.take(now))

    def _start(self, lane: Lane, jobs: list[Job]) -> None:
        worker = lane.idle.pop()
        if not worker.alive:  # it ended while nothing ran on it; another is on its way
            for job in jobs:
                lane.requeue(job)
            return
        self._slots -= 1
        self._batches += 1
        lane.running += 1
        task = asyncio.get_running_loop().create_task(self._run(lane, worker, jobs, self._batches))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, lane: Lane, worker: WorkerHandle, jobs: list[Job], number: int) -> None:
        start = time.monotonic()
        size = sum(job.size for job in jobs)
        for job in jobs:
            job.started, job.batch = start, (number, len(jobs), size)
        # all have gone by then, so that what runs longer runs for nobody
        last = max(job.deadline for job in jobs)
        timer = asyncio.get_running_loop().call_later(max(0.0, last - start) + 0.05, worker.kill)
        try:
            answer = await worker.run(lane.rule, jobs, any(job.trace for job in jobs))
        except WorkerLostError as error:
            self._lost(lane, jobs, error)
        except Exception as error:
            worker.kill()
            for job in jobs:
                job.fail(RequestError(500, f"the batch could not be run: {type(error).__name__}: {error}"))
        else:
            end = time.monotonic()
            lane.on_batch(jobs, end - start)
            for job, result in zip(jobs, answer.results, strict=True):
                job.ended, job.run_ms, job.events = end, answer.run_ms, answer.trace
                if isinstance(result, Exception):
                    job.fail(result)
                elif not job.future.done():
                    job.future.set_result(result)
        finally:
            timer.cancel()
            lane.time_used += time.monotonic() - start
            lane.running -= 1
            self._slots += 1
            if worker.alive:
                lane.idle.append(worker)
            self.pump()

    def _lost(self, lane: Lane, jobs: list[Job], error: WorkerLostError) -> None:
        for job in jobs:
            job.lost += 1
            if job.lost < 2 and not lane.closed and time.monotonic() < job.deadline:
                job.alone = True  # no other request shares its fate
                lane.requeue(job)
            else:
                job.fail(RequestError(500, f"the worker process that ran this request ended: {error}"))
