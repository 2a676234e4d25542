"""What first runs leave to later ones, and to other threads: generated code, the garbage collector, hashing."""

from __future__ import annotations

import gc
import random
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from oprack.errors import OprackError
from oprack.inference.optim_entry import Later
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.python.implementation import without_collecting
from oprack.runtime import Executor
from oprack.runtime.plan.block_plan import Segment
from oprack.tensor import Scope

Build = Callable[..., Program]
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
DOUBLED = [("double", {"X": "x"}, {"Out": "y"}, {"factor": 2.0})]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of ops of each segment that was compiled."""
    counts: list[int] = []
    compile_segment = Segment._compile

    def counted(self: Segment, *args: Any) -> Any:
        counts.append(len(self.operators))
        return compile_segment(self, *args)

    monkeypatch.setattr(Segment, "_compile", counted)
    return counts


@pytest.fixture
def collecting() -> Iterator[None]:
    assert gc.isenabled()
    yield
    gc.enable()


def run(exe: Executor, program: Program, x: Any) -> Any:
    return exe.run(program, {"x": x}, ["y"], Scope())[0]


def test_code_is_generated_for_who_runs_twice(rack: PackManager, build: Build, compiled: list[int]) -> None:
    program, exe = build({"x": X}, DOUBLED), Executor()
    for count, x in enumerate([X, 3 * X, -X]):
        assert len(compiled) == min(max(0, count - 1), 1)
        np.testing.assert_array_equal(run(exe, program, x), 2 * x)
    assert compiled == [1]


def test_who_asks_for_the_code_gets_that_of_the_first_run(rack: PackManager, build: Build, compiled: list[int]) -> None:
    program, exe = build({"x": X}, DOUBLED), Executor()
    run(exe, program, X)
    source = exe.prepare(program.desc).block(0).plan(("y",)).source()
    assert "def segment(run" in source and compiled == [1]


def test_the_collector_rests_within_and_goes_on_behind(collecting: None) -> None:
    def inner() -> list[bool]:
        return [gc.isenabled(), without_collecting(gc.isenabled), gc.isenabled()]

    assert without_collecting(inner) == [False, False, False]
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        without_collecting(divmod, 1, 0)
    assert gc.isenabled()


def test_what_stays_is_not_looked_through_at_once(collecting: None) -> None:
    def make() -> list[Any]:
        gc.collect()
        return [[] for _ in range(5000)]

    gc.unfreeze()  # where something is frozen nothing changes
    made = without_collecting(make, stays=True)
    begun = gc.get_stats()[0]["collections"]
    young = [[] for _ in range(10)]
    assert gc.isenabled() and not gc.get_freeze_count() and gc.get_stats()[0]["collections"] == begun and young
    last = threading.Event()  # garbage among it is found when the collector looks through everything
    gone = weakref.ref(last)
    made += [made, last]
    del made, last
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_a_collector_that_is_off_stays_off(collecting: None) -> None:
    gc.disable()
    assert without_collecting(gc.isenabled) is False
    assert not gc.isenabled()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that raise signals")
def test_no_timer_leaves_the_collector_off(collecting: None) -> None:
    """Each error is kept with its frames, as a caller may, so that nothing is mended when they go."""
    kept: list[BaseException] = []

    class Over(Exception):
        pass

    def handler(*_: Any) -> None:
        raise Over

    before = signal.signal(signal.SIGALRM, handler)
    try:
        while len(kept) < 300:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 3e-5))
                for _ in range(1000):
                    without_collecting(int)
            except Over as over:
                kept.append(over)
                assert gc.isenabled(), f"after {len(kept)} timers"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_first_run_that_fails_leaves_the_collector_on(
    rack: PackManager, build: Build, collecting: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def fail(*args: Any) -> Any:
        seen.append(gc.isenabled())
        raise ValueError("a kernel failed")

    monkeypatch.setattr(Segment, "_record", fail)
    with pytest.raises((OprackError, ValueError), match="a kernel failed"):
        run(Executor(), build({"x": X}, DOUBLED), X)
    assert seen == [False] and gc.isenabled()


def test_a_result_of_another_thread() -> None:
    ready, here = threading.Event(), threading.get_ident()

    def other() -> bool:
        ready.wait(10)
        return threading.get_ident() != here

    later = Later(other)
    ready.set()
    assert later.result() and later.result()


def test_an_error_of_another_thread_is_raised_where_it_is_asked_for() -> None:
    later = Later(lambda: 1 // 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            later.result()
