"""Blocks of a large parameter that threads take turns at."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections import deque
from typing import Any

import numpy as np
import pytest
from oprack_optimizer.kernels import _threads, _update

SIZE = 9 * 64 + 5


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, and blocks of 64 elements."""
    monkeypatch.setattr(_update, "BLOCK", 64)
    monkeypatch.setattr(_threads, "count", lambda: 2)


def normal(seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(SIZE, dtype=np.float32)


@pytest.mark.usefixtures("two")
def test_every_element_is_updated_once_whoever_does_it() -> None:
    p, g, begun = normal(0), normal(1), threading.Barrier(2, timeout=30)
    seen: dict[int, int] = {}

    def update(given: Any, made: Any, work: Any) -> None:
        if threading.get_ident() not in seen:
            seen[threading.get_ident()] = 0
            begun.wait()  # so that both threads have a block
        seen[threading.get_ident()] += 1
        np.subtract(*given, out=made[0])
        np.add(*given, out=made[1])

    low, high = _update.by_blocks(update, (p, g), 2)
    np.testing.assert_array_equal(low, p - g)
    np.testing.assert_array_equal(high, p + g)
    assert len(seen) == 2 and sum(seen.values()) == 10


@pytest.mark.usefixtures("two")
def test_other_threads_keep_to_the_error_state_of_this_one() -> None:
    p, begun, met = normal(0), threading.Barrier(2, timeout=30), set[int]()

    def update(given: Any, made: Any, work: Any) -> None:
        if threading.get_ident() not in met:
            met.add(threading.get_ident())
            begun.wait()
        np.divide(given[0], 0, out=made[0])

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        (found,) = _update.by_blocks(update, (p,), 1)
    assert np.isinf(found).all() and len(met) == 2


@pytest.mark.usefixtures("two")
def test_an_error_of_another_thread_is_raised() -> None:
    own, begun = threading.get_ident(), threading.Barrier(2, timeout=30)
    todo = deque(range(2))

    def some() -> None:
        todo.pop()
        begun.wait()
        if threading.get_ident() != own:
            raise ZeroDivisionError("there")

    with pytest.raises(ZeroDivisionError, match="there"):
        _threads.in_turns(some, 2)


def test_variables_limit_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _threads._VARIABLES:
        monkeypatch.delenv(name, raising=False)
    whole = _threads.count()
    assert 1 <= whole <= (os.cpu_count() or 1)
    for text, count in (("1", 1), ("100000", whole), ("", whole), ("2,1", whole)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert _threads.count() == count


class Stopped(Exception):
    """What a handler raises."""


def interrupted_at(event: int, function: Any) -> bool:
    """Whether the call or return of a function of Python of that number came, and was interrupted; its own are left."""
    left = [event]

    def trace(frame: Any, what: str, _: Any) -> Any:
        if frame.f_code.co_filename != __file__ and what in ("call", "return"):
            left[0] -= 1
            if left[0] == 0:
                raise Stopped
        return trace

    sys.settrace(trace)
    try:
        function()
    except Stopped:
        pass
    finally:
        sys.settrace(None)
    return left[0] <= 0


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("how", [_threads.apart, _threads.in_turns])
def test_threads_serve_whoever_comes_after_an_interruption(how: Any) -> None:
    """Wherever a handler may have raised: as a function begins, or behind what it called last, such as a lock's."""

    def job() -> None:
        begun.wait()  # so that the caller waits, too, and the job meets what it left

    event, came = 0, True
    while came:
        event += 1
        begun = threading.Event()
        timer = threading.Timer(0.02, begun.set)
        timer.start()
        came = interrupted_at(event, lambda: how(job if how is _threads.apart else lambda: None, 2))
        timer.join()
        ran = threading.Event()
        after = threading.Thread(target=how, args=(ran.set, 2), daemon=True)
        after.start()
        after.join(10)
        assert not after.is_alive() and ran.is_set(), f"interrupted at event {event}"
    assert event > 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.usefixtures("two")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_a_fork() -> None:
    p, g = normal(0), normal(1)

    def update(given: Any, made: Any, work: Any) -> None:
        np.subtract(*given, out=made[0])

    _update.by_blocks(update, (p, g), 1)
    child = os.fork()
    if not child:
        try:
            (found,) = _update.by_blocks(update, (p, g), 1)
            os._exit(0 if (found == p - g).all() else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
