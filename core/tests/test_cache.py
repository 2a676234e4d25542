"""The bounded cache, and the budget in bytes that caches share."""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from oprack import Executor, Program, cache_info, set_cache_limit
from oprack.cache import BUDGET, Budget, Cache
from oprack.errors import InvalidArgumentError
from oprack.packs.manager import PackManager
from oprack.runtime.plan.block_plan import BlockPlan


def missed(cache: Any, keys: Any) -> int:
    """How many keys are not there when they are asked for, each of which is then made."""
    count = 0
    for key in keys:
        if cache[key] is None:
            cache[key] = f"made of {key}"
            count += 1
    return count


# One cache ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epochs", ["never end", "end often"])
@pytest.mark.parametrize("most", [1, 2, 7, 32])
def test_the_entries_used_last_are_kept(most: int, epochs: str) -> None:
    """Against a list in the order of use: what is among its first `most` is always there."""
    budget = Budget(1 << 20)
    rng, cache, latest = random.Random(most), Cache(most, "entries", budget), OrderedDict[int, None]()
    for _ in range(5000):
        key = int(rng.expovariate(1 / most))
        among = key in list(latest)[-most:]
        found = cache[key]
        assert found in (None, f"made of {key}") and (found or not among)
        if found is None:
            cache[key] = f"made of {key}"
        latest[key] = None
        latest.move_to_end(key)
        if epochs == "end often" and rng.random() < 0.3:
            budget.count("others", 1 << 17, 0)
            budget.settle()
            budget.count("others", -(1 << 17), 0)
        assert len(cache) <= 2 * most


@pytest.mark.parametrize("forms, most_missed", [(8, 0), (9, 0), (12, 5), (15, 12), (16, 16)])
def test_a_few_forms_more_than_there_is_room_for_cost_a_few_misses(forms: int, most_missed: int) -> None:
    """In the order of use, nine forms in rotation would all be missed where there is room for eight."""
    cache = Cache(8)
    missed(cache, [*range(forms)] * 5)
    rounds = [missed(cache, range(forms)) for _ in range(20)]
    assert sum(rounds) / len(rounds) <= most_missed


def test_all_entries_are_found_in_every_way() -> None:
    cache = Cache(3)
    for i in range(5):
        cache[i] = 10 * i
    assert (len(cache), list(cache), cache.values()) == (5, [0, 1, 2, 3, 4], [0, 10, 20, 30, 40])
    assert 0 in cache and 4 in cache and 5 not in cache and cache[5] is None
    assert cache.get(0) == 0 and cache.get(9, "no") == "no"
    assert (cache.pop(1), cache.pop(1, "gone"), cache[1]) == (10, "gone", None)
    cache.clear()
    assert not cache and cache[4] is None and cache.items() == []


def test_threads_may_share_a_cache() -> None:
    budget, wrong = Budget(20_000), []
    cache = Cache(16, "shared", budget)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(4000):
            key = rng.randrange(60)
            found = cache[key]
            if found is None:
                found = cache.keep(key, 3 * key, 1000)
            if found != 3 * key:
                wrong.append((key, found))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    budget.settle()
    assert not wrong
    assert len(cache) <= 32 and budget.info()["used"] <= 36_000


# The budget ---------------------------------------------------------------------------------------------------------
def test_what_was_used_longest_ago_goes_first_whoever_made_it() -> None:
    budget = Budget(1_000_000)
    first, second = Cache(1000, "plans", budget), Cache(1000, "primitives", budget)
    for i in range(100):
        (first if i % 2 else second).keep(i, str(i), 10_000)
        assert second[0] == "0", "it is used all the time"
    assert budget.dropped == 0 and budget.info()["kinds"]["plans"] == {"bytes": 500_000, "entries": 50}
    for i in range(100, 150):
        (first if i % 2 else second).keep(i, str(i), 10_000)
        assert second[0] == "0"
    info = budget.info()
    assert info["used"] <= 1_000_000 and info["dropped"] == budget.dropped >= 50
    assert info["used"] == 10_000 * (len(first) + len(second)) == sum(k["bytes"] for k in info["kinds"].values())
    newest = [first[i] or second[i] for i in range(60, 150)]
    assert all(newest), "what fits is there"
    assert not any(first[i] or second[i] for i in range(1, 40)), "the oldest is gone"


def test_what_fits_is_never_dropped() -> None:
    budget = Budget(1_000_000)
    cache = Cache(1000, "plans", budget)
    keys = [*range(90)]
    assert [missed_bytes(cache, keys, 10_000) for _ in range(5)] == [90, 0, 0, 0, 0]


def missed_bytes(cache: Cache, keys: Any, nbytes: int) -> int:
    return sum(cache[key] is None and bool(cache.keep(key, str(key), nbytes)) for key in keys)


def test_what_the_last_form_needs_stays_although_others_take_all() -> None:
    """As packed parameters of a large model may do: its plans would be made anew in every run."""
    budget = Budget(1_000_000)
    budget.count("packed parameters", 5_000_000, 3)
    cache = Cache(1000, "plans", budget)
    assert [missed_bytes(cache, range(10), 20_000) for _ in range(4)] == [10, 0, 0, 0]


def test_an_object_that_accounts_for_itself_goes_with_its_last_holder() -> None:
    budget = Budget(1_000_000)
    outer, inner = Cache(1000, "stretches", budget), Cache(1000, "chains", budget)

    class Code:
        def __init__(self) -> None:
            budget.count("code", 50_000, 1)

        def __del__(self) -> None:
            budget.count("code", -50_000, -1)

    for i in range(200):
        outer[i] = inner[i] = Code()
        assert outer[0] is not None
    assert budget.info()["used"] <= 1_000_000
    assert budget.info()["kinds"]["code"]["entries"] == len({*outer, *inner}) <= 20
    assert inner[0] is None, "nobody asked for it"


def test_a_cache_that_goes_gives_back_what_it_took() -> None:
    budget = Budget(1_000_000)
    cache = Cache(10, "plans", budget)
    for i in range(15):
        cache.keep(i, i + 1, 100)
    cache.keep(14, "larger", 300)
    assert budget.info()["used"] == 1700
    cache.pop(14)
    assert budget.info() == {
        "used": 1400, "limit": 1_000_000, "dropped": 0, "kinds": {"plans": {"bytes": 1400, "entries": 14}}
    }  # fmt: skip
    del cache
    assert budget.info()["used"] == 0 and budget.info()["kinds"] == {}


def test_the_limit_is_set_by_the_environment_and_by_a_call(monkeypatch: Any) -> None:
    monkeypatch.setattr(BUDGET, "_limit", None)
    monkeypatch.setenv("OPRACK_CACHE_LIMIT", "123456789")
    assert cache_info()["limit"] == 123456789
    set_cache_limit(5 << 20)
    assert cache_info()["limit"] == 5 << 20
    for wrong in (-1, 1.5, "1 GB", True):
        with pytest.raises(InvalidArgumentError, match=r"set_cache_limit\(.*expected a number of bytes"):
            set_cache_limit(wrong)  # type: ignore[arg-type]
    monkeypatch.setenv("OPRACK_CACHE_LIMIT", "1 GB")
    set_cache_limit(0)
    with pytest.raises(InvalidArgumentError, match="OPRACK_CACHE_LIMIT is '1 GB'; expected a number of bytes"):
        set_cache_limit(None)
    monkeypatch.delenv("OPRACK_CACHE_LIMIT")
    set_cache_limit(None)
    assert 1 << 20 < cache_info()["limit"] <= 512 << 20


# Its users ------------------------------------------------------------------------------------------------------------
@pytest.fixture
def planned(monkeypatch: Any) -> list[Any]:
    """What each new plan reads after a run."""
    made, init = list[Any](), BlockPlan.__init__

    def counted(self: BlockPlan, *args: Any) -> None:
        made.append(args[-1])
        init(self, *args)

    monkeypatch.setattr(BlockPlan, "__init__", counted)
    return made


@pytest.mark.parametrize("lists", [8, 9, 33, 65])
def test_fetch_lists_in_rotation_are_planned_once(
    lists: int, planned: list[Any], build: Any, rack: PackManager
) -> None:
    names = [f"y{i}" for i in range(lists)]
    program: Program = build({"x": np.ones((2, 2), np.float32)}, [("double", {"X": "x"}, {"Out": n}) for n in names])
    executor = Executor()
    for turn in range(3):
        for name in names:
            (y,) = executor.run(program, {"x": np.full((2, 2), turn, np.float32)}, [name])
            assert (np.asarray(y) == 2 * turn).all()
    assert len(planned) == lists


def test_a_shape_that_comes_again_asks_no_rule(build: Any, rack: PackManager, monkeypatch: Any) -> None:
    from oprack.runtime.kernel_operator import OperatorWithKernel

    program: Program = build({"x": np.ones((2, 2), np.float32)}, [("double", {"X": "x"}, {"Out": "y"})])
    executor, asked = Executor(), list[Any]()
    ask = OperatorWithKernel.ask_shape_rule
    monkeypatch.setattr(OperatorWithKernel, "ask_shape_rule", lambda *args: asked.append(1) or ask(*args))
    for _ in range(3):
        for rows in range(1, 301):
            executor.run(program, {"x": np.ones((rows, 2), np.float32)}, ["y"])
    assert len(asked) <= 301
