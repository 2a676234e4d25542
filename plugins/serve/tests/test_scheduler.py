"""Fairness between models: the slot goes to the one that has had the least time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oprack_serve.errors import RequestError
from oprack_serve.jobs import MOST_PASSED, Job, JobGroup
from oprack_serve.joining import JoinRule
from oprack_serve.scheduler import BatchResult, Lane, Scheduler
from oprack_serve.signature import Tensor


class Sleeper:
    """A worker whose batches take a fixed time; `ran` has the model's name for each of them, for all workers."""

    alive = True
    number = 1

    def __init__(self, name: str, seconds: float, ran: list[str]) -> None:
        self.name, self.seconds, self.ran = name, seconds, ran

    def run(self, feed, outputs, trace, done) -> None:
        self.ran.append(self.name)
        asyncio.get_running_loop().call_later(self.seconds, done, BatchResult(feed, self.seconds * 1e3))

    def kill(self) -> None:
        raise AssertionError("nothing here runs too long")


class Clock:
    """Time that only runs of batches take, however busy the machine is."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("oprack_serve.scheduler.time", found)
    return found


class Timed(Sleeper):
    """A worker by that clock."""

    def __init__(self, name: str, seconds: float, ran: list[str], clock: Clock) -> None:
        super().__init__(name, seconds, ran)
        self.clock = clock

    def run(self, feed, outputs, trace, done) -> None:
        self.ran.append(self.name)
        loop = asyncio.get_running_loop()

        def end() -> None:
            self.clock.now += self.seconds
            done(BatchResult(feed, self.seconds * 1e3))

        loop.call_soon(end)


def lane(scheduler: Scheduler, worker: Sleeper) -> Lane:
    """A model that joins nothing."""
    made = Lane(scheduler, 1, 0.0, 1000)
    made.rule = JoinRule(reason="each request runs alone")
    made.idle.append(worker)
    scheduler.lanes.append(made)
    return made


class Asked(Job):
    """A request with a future of its outputs."""

    __slots__ = ("future",)


def job() -> Asked:
    future = asyncio.get_running_loop().create_future()

    def done(result) -> None:
        (future.set_exception if isinstance(result, Exception) else future.set_result)(result)

    made = Asked({"x": Tensor(np.zeros([1, 1], np.float32), [])}, ["y"], time.monotonic() + 60, done)
    made.future = future
    return made


def test_models_under_load_get_the_same_time_whatever_their_runs_take(clock):
    async def load() -> tuple[list[str], float, float]:
        ran: list[str] = []
        scheduler = Scheduler(1)
        quick, slow = (lane(scheduler, Timed(n, s, ran, clock)) for n, s in (("quick", 0.002), ("slow", 0.02)))
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
    assert ran.count("slow") >= 12 and abs(ran.count("quick") - 10 * ran.count("slow")) <= 20
    assert abs(quick - slow) <= 2 * 0.02  # a run or two


def test_a_model_with_one_request_does_not_wait_for_the_queue_of_another(clock):
    """Nor does it get the time back in which it had nothing to do."""

    async def load() -> list[str]:
        ran: list[str] = []
        scheduler = Scheduler(1)
        busy, rare = (lane(scheduler, Timed(n, 0.005, ran, clock)) for n in ("busy", "rare"))
        waiting = [job() for _ in range(60)]
        for one in waiting:
            busy.submit(one)
        while len(ran) < 20:
            await asyncio.sleep(0)
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
    assert len(shared) >= 19 and shared.count("busy") >= 9  # they take turns


def joining_lane(scheduler: Scheduler, worker: Sleeper, max_batch: int, max_delay: float = 0.0) -> Lane:
    """A model that joins along the batch dim."""
    made = Lane(scheduler, max_batch, max_delay, 1000)
    made.rule = JoinRule({"x": "batch"})
    made.idle.append(worker)
    scheduler.lanes.append(made)
    return made


def test_a_free_worker_starts_at_once_and_what_waits_meanwhile_is_one_batch():
    async def load() -> tuple[list[int], float]:
        scheduler = Scheduler(1)
        busy = joining_lane(scheduler, Sleeper("m", 0.05, []), 8)
        began = time.monotonic()
        first = [job(), job()]
        for one in first:  # of one turn of the event loop
            busy.submit(one)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [one.batch for one in first] == [(1, 2, 2)] * 2 and time.monotonic() - began < 0.04
        later = [job() for _ in range(11)]
        for one in later:
            busy.submit(one)
            await asyncio.sleep(0.001)
        await asyncio.gather(*(one.future for one in (*first, *later)))
        return [one.batch[:2] for one in later]

    assert asyncio.run(load()) == [(2, 8)] * 8 + [(3, 3)] * 3


def test_a_delay_makes_requests_wait_for_company_but_not_one_that_is_alone():
    async def load() -> list[tuple[int, int]]:
        scheduler = Scheduler(1)
        busy = joining_lane(scheduler, Sleeper("m", 0.001, []), 4, max_delay=0.2)
        alone = job()
        busy.submit(alone)
        began = time.monotonic()
        await alone.future
        assert time.monotonic() - began < 0.15
        some = [job() for _ in range(4)]
        for one in some[:3]:
            busy.submit(one)
        await asyncio.sleep(0.02)
        assert busy.waiting == 3
        busy.submit(some[3])  # they are as many as a batch may have
        await asyncio.gather(*(one.future for one in some))
        assert time.monotonic() - began < 0.19
        return [one.batch[:2] for one in some]

    assert asyncio.run(load()) == [(2, 4)] * 4


def test_requests_that_were_taken_back_are_not_run_and_not_counted():
    async def load() -> None:
        ran: list[str] = []
        scheduler = Scheduler(1)
        busy = joining_lane(scheduler, Sleeper("m", 0.02, ran), 8)
        jobs = [job() for _ in range(4)]
        busy.submit(jobs[0])
        while not ran:
            await asyncio.sleep(0)
        for one in jobs[1:]:
            busy.submit(one)
        busy.withdraw(jobs[0])  # it runs, for nobody
        busy.withdraw(jobs[2])
        assert busy.waiting == 2
        await asyncio.gather(jobs[1].future, jobs[3].future)
        assert jobs[1].batch == jobs[3].batch == (2, 2, 2) and ran == ["m", "m"]
        assert not jobs[0].future.done() and not jobs[2].future.done() and busy.drained

    asyncio.run(load())


class Fails(Sleeper):
    """A worker whose batches fail when 13 is among their values; `ran` has the values of each batch."""

    def run(self, feed, outputs, trace, done) -> None:
        values = feed["x"].array[:, 0].tolist()
        self.ran.append(values)
        error = RequestError(400, "13 is no good") if 13 in values else None
        asyncio.get_running_loop().call_soon(done, BatchResult(feed, 1.0, error))


@pytest.mark.parametrize(
    ("values", "batches"),
    [
        ([7, 13, 9], [[7, 13, 9], [7], [13, 9], [13], [9]]),
        (
            [13, 1, 2, 3, 4, 5, 6, 7],
            [[13, 1, 2, 3, 4, 5, 6, 7], [13, 1, 2, 3], [4, 5, 6, 7], [13, 1], [2, 3], [13], [1]],
        ),
    ],
)
def test_a_joined_run_that_fails_is_run_again_in_halves(values, batches):
    """Which of them is at fault is found in 2 log n runs; those that come meanwhile run with none of them."""

    async def load() -> tuple[list, list, dict]:
        ran: list = []
        scheduler = Scheduler(1)
        busy = joining_lane(scheduler, Fails("m", 0.0, ran), 8)
        jobs, late = [job() for _ in values], job()
        late.feed["x"].array[:] = 99
        for one, value in zip(jobs, values, strict=True):
            one.feed["x"].array[:] = value
            busy.submit(one)
        while not ran:
            await asyncio.sleep(0)
        busy.submit(late)
        found = await asyncio.gather(*(one.future for one in jobs), return_exceptions=True)
        return found, ran, await late.future

    found, ran, late = asyncio.run(load())
    ran.remove([99])
    assert sorted(ran) == sorted(batches) and late["x"].array.tolist() == [[99.0]]
    for value, result in zip(values, found, strict=True):
        if value == 13:
            assert isinstance(result, RequestError) and str(result) == "13 is no good"
        else:
            assert result["x"].array.tolist() == [[float(value)]]


def test_a_client_whose_request_failed_joins_no_others_until_one_went_well():
    async def load() -> tuple[list, list]:
        ran: list = []
        scheduler = Scheduler(1)
        busy = joining_lane(scheduler, Fails("m", 0.0, ran), 8)
        statuses = []
        for bad in (13, 13, 5, 5):
            jobs = [job() for _ in range(3)]
            for one, source, value in zip(jobs, ("a", "b", "c"), (1, bad, 3), strict=True):
                one.feed["x"].array[:], one.source = value, source
                busy.submit(one)
            found = await asyncio.gather(*(one.future for one in jobs), return_exceptions=True)
            statuses.append([isinstance(result, RequestError) for result in found])
        return ran, statuses

    ran, statuses = asyncio.run(load())
    apart = [sorted(batches) for batches in (ran[:5], ran[5:7], ran[7:9], ran[9:])]
    halved = [[1], [1, 13, 3], [3], [13], [13, 3]]
    assert apart == [halved, [[1, 3], [13]], [[1, 3], [5]], [[1, 5, 3]]]
    assert statuses == [[False, True, False]] * 2 + [[False] * 3] * 2


def waiting(lengths, sizes=None) -> JobGroup:
    """Requests of sequences so long, the first the oldest."""
    group = JobGroup("key")
    for number, length in enumerate(lengths):
        made = Job({}, [], 0.0, lambda _: None, source=number, length=length, size=sizes[number] if sizes else 1)
        group.append(made)
    return group


def test_a_batch_takes_the_oldest_and_those_of_like_length():
    group = waiting([9, 50, 3, 8, 51, 9, 52, 10])
    assert [job.source for job in group.take(4)] == [0, 5, 3, 7] and group.size == 4
    assert [job.source for job in group.take(3)] == [1, 4, 6] and [job.source for job in group.jobs] == [2]
    in_order = waiting([0] * 9)
    assert [[job.source for job in in_order.take(4)] for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    large = waiting([5, 5, 5], [9, 2, 1])
    assert [[job.source for job in large.take(4)] for _ in range(2)] == [[0], [1, 2]]


@given(st.data())
def test_no_request_is_passed_over_for_long(data):
    """However they come, a batch that younger ones are in is at most MOST_PASSED times for each; and all are taken."""
    group, count, passed, order = JobGroup("key"), 0, Counter(), []
    most = data.draw(st.integers(1, 5))
    for _ in range(30):
        for length in data.draw(st.lists(st.integers(1, 9), max_size=2 * most)):
            size = data.draw(st.integers(1, most))
            group.append(Job({}, [], 0.0, lambda _: None, source=count, length=length, size=size))
            count += 1
        if group.jobs:
            before = [job.source for job in group.jobs]
            batch = group.take(most)
            assert batch[0].source == before[0] and sum(job.size for job in batch) <= most
            taken = {job.source for job in batch}
            passed.update(source for source in set(before) - taken if source < max(taken))
            order += taken
    while group.jobs:
        order += [job.source for job in group.take(most)]
    assert sorted(order) == list(range(count)) and group.size == 0
    assert max(passed.values(), default=0) <= MOST_PASSED


class Reader(Sleeper):
    """A worker of a model over sequences, which fails for batches of `bad` rows."""

    def __init__(self, bad: int = 0) -> None:
        self.batches, self.bad = [], bad

    def run(self, feed, outputs, trace, done) -> None:
        self.batches.append(feed["x"].lod[0])
        failed = len(feed["x"].array) == self.bad
        result = BatchResult({}, 1.0, RequestError(400, "no")) if failed else BatchResult({"y": feed["x"]}, 1.0)
        asyncio.get_running_loop().call_soon(done, result)


@pytest.mark.parametrize(("bad", "last"), [(0, [[0, 5, 8]]), (8, [[0, 5, 8], [0, 5]])])
def test_a_batch_is_filled_up_and_runs_without_that_when_it_fails(bad, last):
    async def load():
        reader = Reader(bad)
        made = Lane(Scheduler(1), 4, 0.0, 100)
        made.rule = JoinRule({"y": "lod"})
        made.idle.append(reader)
        made.scheduler.lanes.append(made)
        one = job()
        one.feed = {"x": Tensor(np.arange(5, dtype=np.float32)[:, None], [[0, 5]])}
        made.submit(one)
        return (await one.future)["y"], reader.batches

    y, batches = asyncio.run(load())
    assert y.array.ravel().tolist() == [0, 1, 2, 3, 4] and y.lod == [[0, 5]]
    assert batches == last
