"""Requests on their way through a lane, and those of them that may run together."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from oprack_serve.joining import Feed
from oprack_serve.signature import Tensor


@dataclass(eq=False)
class Job:
    """A request for a run.

    feed, outputs: what the model gets and what it has to compute. deadline: when the server gives up on it; a
    request whose client waits for less time is withdrawn before. done: is called with the outputs or an error,
    once, unless it was withdrawn. key: requests of one key may run together; None runs alone. source: where it
    comes from, to know another request from there. admitted: it is part of a request that was admitted, so it waits
    however many do. size: entries of a batch. length: rows of one of them, where they are sequences. join: these
    three, where they are known. passed: batches that requests behind it were taken for. batch: its number, requests
    and entries. lost: how many workers ended with it.
    """

    feed: Feed
    outputs: list[str]
    deadline: float
    done: Callable[[dict[str, Tensor] | Exception], None]
    trace: bool = False
    source: Any = None
    queued: float = field(default_factory=time.monotonic)
    admitted: bool = False
    join: tuple[Any, int, float] | None = None
    size: int = 1
    length: float = 0.0
    # these belong to the class until they change, as in few requests all of them do
    key: Any = field(default=None, init=False)
    passed: int = field(default=0, init=False)
    started: float = field(default=0.0, init=False)
    ended: float = field(default=0.0, init=False)
    lost: int = field(default=0, init=False)
    batch: tuple[int, int, int] = field(default=(0, 0, 0), init=False)
    run_ms: float = field(default=0.0, init=False)
    events: list[Any] | None = field(default=None, init=False)
    finished: bool = field(default=False, init=False)

    def finish(self, result: dict[str, Tensor] | Exception) -> None:
        """Give the outputs or the error, unless it was answered or the client has gone."""
        if not self.finished:
            done, self.done, self.finished = self.done, _nobody, True
            done(result)

    def drop(self) -> None:
        """Nobody awaits it any more."""
        self.finished = True
        self.done = _nobody  # else it would keep the request in memory, which keeps it


MOST_PASSED = 3


def halve(jobs: list[Job]) -> None:
    """Have each half of them run apart from all others."""
    middle = len(jobs) // 2
    for half in (jobs[:middle], jobs[middle:]):
        key = object() if len(half) > 1 else None
        for job in half:
            job.key = key


def _nobody(_: dict[str, Tensor] | Exception) -> None:
    """Awaits nothing."""


class JobGroup:
    """Requests of one key that wait, the oldest first, and the entries of all of them."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.jobs: deque[Job] = deque()
        self.size = 0

    def waits_since(self) -> float:
        """When the oldest was queued."""
        return self.jobs[0].queued

    def append(self, job: Job) -> None:
        self.jobs.append(job)
        self.size += job.size

    def append_first(self, job: Job) -> None:
        self.jobs.appendleft(job)
        self.size += job.size

    def remove(self, job: Job) -> bool:
        """Whether it was there."""
        if job not in self.jobs:
            return False
        self.jobs.remove(job)
        self.size -= job.size
        return True

    def take(self, most: int) -> list[Job]:
        """Requests of `most` entries together, or one that has more by itself.

        The oldest is among them, and beside it those whose sequences are most nearly as long: a run takes as many steps
        as its longest sequence. One that was passed over MOST_PASSED times goes before all that were not, so none waits
        for more than that many batches longer than it would if they came in order.
        """
        if self.key is None:
            batch = [self.jobs[0]]
        elif self.size <= most:
            batch = list(self.jobs)
        else:
            batch = self._neighbours(most)
        self._remove(batch)
        return batch

    def _neighbours(self, most: int) -> list[Job]:
        """The oldest, those that were passed over, and then those of like length, the older first."""
        oldest = self.jobs[0]

        def distance(job: Job) -> float:
            return -1.0 if job.passed >= MOST_PASSED else abs(job.length - oldest.length)

        others = sorted(itertools.islice(self.jobs, 1, None), key=distance)
        batch, size = [oldest], oldest.size
        for job in others:
            if size + job.size <= most:
                batch.append(job)
                size += job.size
                if size == most:
                    break
            elif job.passed >= MOST_PASSED:
                break  # the room is not given to younger ones
        return batch

    def _remove(self, batch: list[Job]) -> None:
        """Take requests out, and count for those that stay whether younger ones went."""
        if len(batch) == len(self.jobs):
            self.jobs, self.size = deque(), 0
            return
        taken = set(map(id, batch))
        left: deque[Job] = deque()
        behind = len(taken)
        for job in self.jobs:
            if id(job) in taken:
                behind -= 1
                self.size -= job.size
            else:
                job.passed += behind > 0
                left.append(job)
        self.jobs = left
