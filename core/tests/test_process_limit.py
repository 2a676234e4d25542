"""Settings of the process are changed by one with block at a time, and taken back by it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from oprack.python.process_limit import ProcessLimit

SETTING = {"threads": 8}


@contextmanager
def limited(count: int) -> Iterator[None]:
    before = SETTING["threads"]
    SETTING["threads"] = count
    time.sleep(0)
    yield
    SETTING["threads"] = before


def test_a_block_inside_of_another_changes_nothing() -> None:
    with ProcessLimit(lambda: limited(1)):
        with ProcessLimit(lambda: limited(2)):
            assert SETTING["threads"] == 1
        assert SETTING["threads"] == 1
    assert SETTING["threads"] == 8


def test_threads_leave_the_setting_as_it_was() -> None:
    def run(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(200):
            with ProcessLimit(lambda: limited(draw.choice((1, 2)))):
                assert SETTING["threads"] in (1, 2, 8)
                time.sleep(draw.choice((0, 0, 1e-5)))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert SETTING["threads"] == 8


def test_one_that_can_not_begin_leaves_the_way_free() -> None:
    def broken() -> AbstractContextManager[None]:
        raise OSError("no such library")

    with pytest.raises(OSError, match="no such library"), ProcessLimit(broken):
        pass
    with pytest.raises(ZeroDivisionError), ProcessLimit(lambda: limited(3)):
        assert SETTING["threads"] == 3
        raise ZeroDivisionError
    SETTING["threads"] = 8
    with ProcessLimit(lambda: limited(1)):
        assert SETTING["threads"] == 1
