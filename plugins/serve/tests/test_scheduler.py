"""Fairness between models: the slot goes to the one that has had the least time."""

from __future__ import annotations

import asyncio
import time

import numpy as np
from oprack_serve.joining import JoinRule
from oprack_serve.scheduler import BatchResult, Job, Lane, Scheduler
from oprack_serve.signature import Tensor


class Sleeper:
    """A worker whose batches take a fixed time; `ran` has the model's name for each of them, for all workers."""

    alive = True
    number = 1

    def __init__(self, name: str, seconds: float, ran: list[str]) -> None:
        self.name, self.seconds, self.ran = name, seconds, ran

    async def run(self, rule, jobs, trace) -> BatchResult:
        self.ran.append(self.name)
        await asyncio.sleep(self.seconds)
        return BatchResult([job.feed for job in jobs], self.seconds * 1e3)

    def kill(self) -> None:
        raise AssertionError("nothing here runs too long")


def lane(scheduler: Scheduler, worker: Sleeper) -> Lane:
    """A model that joins nothing."""
    made = Lane(scheduler, 1, 0.0, 1000)
    made.rule = JoinRule(reason="each request runs alone")
    made.idle.append(worker)
    scheduler.lanes.append(made)
    return made


def job() -> Job:
    return Job({"x": Tensor(np.zeros([1, 1], np.float32), [])}, ["y"], time.monotonic() + 60)


def test_models_under_load_get_the_same_time_whatever_their_runs_take():
    async def load() -> tuple[list[str], float, float]:
        ran: list[str] = []
        scheduler = Scheduler(1)
        quick, slow = (lane(scheduler, Sleeper(n, s, ran)) for n, s in (("quick", 0.002), ("slow", 0.02)))
        many, few = [job() for _ in range(900)], [job() for _ in range(40)]
        for one in many:
            quick.submit(one)
        for one in few:
            slow.submit(one)
        await few[11].future
        found = list(ran), quick.time_used, slow.time_used
        for busy in (quick, slow):
            busy.fail_all(RuntimeError("enough"))
        await asyncio.gather(*(one.future for one in (*many, *few)), return_exceptions=True)
        return found

    ran, quick, slow = asyncio.run(load())
    assert ran.count("quick") > 2 * ran.count("slow") > 20
    # neither is ahead by more than a run or two, which a busy machine may make longer
    assert abs(quick - slow) <= 0.3 * max(quick, slow)


def test_a_model_with_one_request_does_not_wait_for_the_queue_of_another():
    """Nor does it get the time back in which it had nothing to do."""

    async def load() -> list[str]:
        ran: list[str] = []
        scheduler = Scheduler(1)
        busy, rare = (lane(scheduler, Sleeper(n, 0.005, ran)) for n in ("busy", "rare"))
        waiting = [job() for _ in range(60)]
        for one in waiting:
            busy.submit(one)
        await asyncio.sleep(0.1)
        before = len(ran)
        first = job()
        rare.submit(first)
        await first.future
        assert "rare" in ran[before : before + 2]
        more = [job() for _ in range(10)]
        for one in more:
            rare.submit(one)
        await asyncio.gather(*(one.future for one in (*more, *waiting)))
        return ran[ran.index("rare") + 1 :]

    ran = asyncio.run(load())
    shared = ran[: max(i for i, name in enumerate(ran) if name == "rare")]
    assert len(shared) >= 16 and shared.count("busy") >= 6  # they take turns
