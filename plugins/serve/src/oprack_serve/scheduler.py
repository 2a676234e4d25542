"""Which requests run together, where, and when: a queue for each model, and a fair choice between models.

A `Lane` is the queue of one version of a model with its workers. A worker that is free takes what waits, at the end of
the event loop's turn: a request that finds a worker idle starts at once, and while all are busy, those that wait become
the next batch. So batches grow with the load by themselves, and a delay (`max_delay`) is for those who want larger
ones. At most `slots` batches run at once; the next slot goes to the model that has had the least time so far, so that a
busy model can't starve another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from oprack_serve import joining
from oprack_serve.errors import RequestError, WorkerLostError
from oprack_serve.jobs import Job, JobGroup, halve
from oprack_serve.joining import Feed, JoinRule, join_key
from oprack_serve.signature import Tensor


@dataclass
class BatchResult:
    """The outputs of one run, or its error; milliseconds in the predictor; events of the ops where they are wanted."""

    outputs: dict[str, Tensor]
    run_ms: float = 0.0
    error: RequestError | None = None
    trace: list[Any] | None = None


MAX_SUSPECTS = 1024


class WorkerHandle(Protocol):
    """What a lane needs of a worker."""

    alive: bool
    number: int

    def run(self, feed: Feed, outputs: list[str], trace: bool, done: Callable[[BatchResult | Exception], None]) -> None:
        """Run the model; `done` is called with what came of it, later: WorkerLostError when the process ended."""

    def kill(self) -> None:
        """End it while it runs."""


class Lane:
    """The queue of one version of a model."""

    def __init__(self, scheduler: Scheduler, max_batch: int, max_delay: float, max_queue: int) -> None:
        self.scheduler = scheduler
        self.max_batch, self.max_delay, self.max_queue = max_batch, max_delay, max_queue
        self.rule = JoinRule(reason="not loaded yet")
        self.idle: list[WorkerHandle] = []
        self.time_used = 0.0
        self.waiting = 0
        """Requests in the queue."""
        self.running = 0
        self.closed = False
        self.on_batch: Callable[[list[Job], float], None] = lambda jobs, seconds: None
        self._groups: dict[Any, JobGroup] = {}
        self._last = 0
        self._suspects: dict[Any, None] = {}  # sources whose latest request failed, the latest last

    @property
    def drained(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return not self.waiting and not self.running

    def submit(self, job: Job) -> None:
        """Queue a request. Raises RequestError with status 503 when the queue is full."""
        if self.closed:
            raise RequestError(503, "this version of the model was taken away; send the request again")
        if self.waiting >= self.max_queue and not job.admitted:
            raise RequestError(503, f"{self.waiting} requests wait for this model already; try again later")
        if not self.waiting and not self.running:
            self.time_used = max(self.time_used, self.scheduler.least_time())
        job.join = job.join or join_key(job.feed)
        key, job.size, job.length = job.join
        if not self.rule.reason and not job.trace and self.max_batch > 1 and job.source not in self._suspects:
            job.key = key
        self._group(job.key).append(job)
        self.waiting += 1
        self.scheduler.pump_soon()

    def _group(self, key: Any) -> JobGroup:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = JobGroup(key)
        return group

    def withdraw(self, job: Job) -> None:
        """Take a request back whose time is over or whose client left; if it runs, nobody awaits its result."""
        job.drop()
        group = self._groups.get(job.key)
        if group is not None and group.remove(job):
            self.waiting -= 1
            if not group.jobs:
                del self._groups[job.key]

    def requeue(self, jobs: list[Job]) -> None:
        """Queue requests again before all others."""
        for job in reversed(jobs):
            if not job.finished:
                self._group(job.key).append_first(job)
                self.waiting += 1

    def judge(self, job: Job, failed: bool) -> None:
        """Have requests of this source run alone until one of them, which has just run alone, does not fail."""
        self._suspects.pop(job.source, None)
        if failed and job.source is not None:
            self._suspects[job.source] = None
            if len(self._suspects) > MAX_SUSPECTS:
                del self._suspects[next(iter(self._suspects))]

    def ready_at(self, now: float) -> float | None:
        """When the next batch may start: now or before, or later; None when nothing waits or no worker is free."""
        if not self.waiting or not self.idle:
            return None
        if not self.max_delay:
            return now
        return min(self._group_ready(group, now) for group in self._groups.values())

    def _group_ready(self, group: JobGroup, now: float) -> float:
        if not self.max_delay or group.key is None or group.size >= self.max_batch:
            return now
        company = self._last > 1 or len(group.jobs) > 1 or self.running
        return group.jobs[0].queued + self.max_delay if company else now

    def take(self, now: float) -> list[Job]:
        """The batch to run next, of the group whose oldest request has waited longest."""
        ready = [group for group in self._groups.values() if self._group_ready(group, now) <= now]
        group = min(ready, key=JobGroup.waits_since)
        batch = group.take(self.max_batch)
        self._last = len(batch)
        self.waiting -= len(batch)
        if not group.jobs:
            del self._groups[group.key]
        return batch

    def fail_all(self, error: Exception) -> None:
        """Answer everything that waits with an error, and take nothing more."""
        self.closed = True
        groups, self._groups, self.waiting = self._groups, {}, 0
        for group in groups.values():
            for job in group.jobs:
                job.finish(error)


@dataclass(eq=False)
class _Batch:
    """A batch that runs. kill_at: when the server has given up on all its requests. feeds: theirs, and a filler."""

    lane: Lane
    worker: WorkerHandle
    jobs: list[Job]
    start: float
    kill_at: float
    feeds: list[Feed]


class Scheduler:
    """Runs batches of all lanes, at most `slots` at once.

    Args:
        slots: How many; a model has as many workers.
        front: The number of this front among those that share the workers, None where there is one.
    """

    def __init__(self, slots: int, front: int | None = None) -> None:
        self._slots = self._most = slots
        self._front = front
        self.lanes: list[Lane] = []
        self._timer: asyncio.TimerHandle | None = None
        self._pumping = False
        self._running: set[_Batch] = set()
        self._batches = 0

    def least_time(self) -> float:
        """The least time that a lane with work has had: where one that had none starts."""
        return min((lane.time_used for lane in self.lanes if not lane.drained), default=0.0)

    def pump_soon(self) -> None:
        """Start what can start when the event loop has done what it is about: others may come in this turn."""
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self.pump)

    def pump(self) -> None:
        """Start whatever can start now, and come back when more can."""
        self._pumping = False
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
            lane = ready[0] if len(ready) == 1 else min(ready, key=lambda lane: lane.time_used)
            self._start(lane, lane.take(now), now)

    def _choose(self, idle: list[WorkerHandle]) -> WorkerHandle:
        """Take the one that ran last; or, since other fronts use them too, the first in an order of this one's own."""
        if self._front is None:
            return idle.pop()
        turn = self._front
        return idle.pop(min(range(len(idle)), key=lambda i: (idle[i].number + turn) % self._most))

    def _start(self, lane: Lane, jobs: list[Job], now: float) -> None:
        worker = self._choose(lane.idle)
        if not worker.alive:  # it ended while nothing ran on it; another is on its way
            lane.requeue(jobs)
            return
        self._slots -= 1
        self._batches += 1
        lane.running += 1
        shared = self._batches, len(jobs), sum([job.size for job in jobs])
        names: list[str] = []
        for job in jobs:
            job.started, job.batch = now, shared
            names += job.outputs
        kill_at = max([job.deadline for job in jobs]) + 0.05
        batch = _Batch(lane, worker, jobs, now, kill_at, [job.feed for job in jobs])
        self._running.add(batch)
        outputs, trace = list(dict.fromkeys(names)), jobs[0].trace  # what is traced runs alone
        try:
            feeds = batch.feeds
            if isinstance(jobs[0].key, tuple) and (more := joining.filler(feeds)) is not None:
                feeds.append(more)
            feed = feeds[0] if len(feeds) == 1 else joining.join(feeds)
            worker.run(feed, outputs, trace, lambda result: self._ran(batch, result))
        except Exception as error:
            asyncio.get_running_loop().call_soon(self._ran, batch, error)

    def _ran(self, batch: _Batch, result: BatchResult | Exception) -> None:
        """Take a result. The worker gets its next batch first: it is idle, and answers take time."""
        lane, worker, end = batch.lane, batch.worker, time.monotonic()
        self._running.discard(batch)
        lane.time_used += end - batch.start
        lane.running -= 1
        self._slots += 1
        if worker.alive:
            lane.idle.append(worker)
        results = self._results(batch, result)
        self.pump()
        if isinstance(result, BatchResult):
            lane.on_batch(batch.jobs, end - batch.start)
            for job in batch.jobs:
                job.ended, job.run_ms, job.events = end, result.run_ms, result.trace
        for job, own in results:
            job.finish(own)

    def _results(
        self, batch: _Batch, result: BatchResult | Exception
    ) -> list[tuple[Job, dict[str, Tensor] | Exception]]:
        """What each request gets now; those that get nothing are queued again."""
        lane, jobs = batch.lane, batch.jobs
        if isinstance(result, WorkerLostError):
            return self._lost(batch, result)
        if isinstance(result, Exception):
            batch.worker.kill()  # it may have half of a message
            text = f"the batch could not be run: {type(result).__name__}: {result}"
            return [(job, RequestError(500, text)) for job in jobs]
        if len(batch.feeds) == 1:
            lane.judge(jobs[0], failed=result.error is not None)
            return [(jobs[0], result.error or result.outputs)]
        if result.error is None:
            try:
                parts = joining.split(lane.rule, batch.feeds, result.outputs)[: len(jobs)]
                if len(jobs) == 1:
                    lane.judge(jobs[0], failed=False)
                return list(zip(jobs, parts, strict=True))
            except ValueError:
                pass
        # a request that fails harms only itself: it is found by halving, in 2 log n runs, which are not filled up
        if lane.closed:
            error = result.error or RequestError(503, "this version of the model was taken away; send it again")
            return [(job, error) for job in jobs]
        left = [job for job in jobs if not job.finished]
        halve(left)
        lane.requeue(left)
        return []

    def _lost(self, batch: _Batch, error: WorkerLostError) -> list[tuple[Job, dict[str, Tensor] | Exception]]:
        now, again = time.monotonic(), []
        results: list[tuple[Job, dict[str, Tensor] | Exception]] = []
        for job in batch.jobs:
            job.lost += 1
            if job.lost < 2 and not batch.lane.closed and now < job.deadline:
                job.key = None  # alone, so that no other request shares its fate
                again.append(job)
            else:
                results.append((job, RequestError(500, f"the worker process that ran this request ended: {error}")))
        batch.lane.requeue(again)
        return results

    def sweep(self, now: float) -> None:
        """End runs that take longer than the server gives any of their requests; their slots are free at once."""
        for batch in [batch for batch in self._running if now >= batch.kill_at]:
            batch.kill_at = float("inf")
            batch.worker.kill()
