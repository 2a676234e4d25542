"""Collectives that are started and go on while ranks compute, on ranks that are threads, and of MPI, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack.errors import CollectiveError, InvalidArgumentError
from oprack.parallel import Communicator, world
from oprack.parallel.communicator import CHECKED
from oprack.parallel.simulated import FakeWorld
from oprack.parallel.transfers import waited
from oprack.testing.worlds import ThreadWorld

COUNTS = [3, 0, 2]
ARRAYS = [np.random.default_rng(r).standard_normal((5, 2)).astype("float32") for r in range(3)]


def started(ranks: Communicator) -> list[Any]:
    """A collective of each sort, under way together, and waited for in the other order."""
    x, rows = ARRAYS[ranks.rank], slice(sum(COUNTS[: ranks.rank]), sum(COUNTS[: ranks.rank + 1]))
    whole = np.empty_like(x)
    whole[rows] = x[rows]
    transfers = [
        ranks.start_all_reduce(x, factor=0.5),
        ranks.start_all_reduce(x, "max"),
        ranks.start_all_gather(whole, COUNTS),
        ranks.start_reduce_scatter(x, COUNTS, 2.0),
    ]
    found = [t.wait() for t in reversed(transfers)][::-1]
    assert all(t.test() for t in transfers)
    assert all(t.wait() is value for t, value in zip(transfers, found, strict=True))
    assert not ranks.under_way
    return found


def test_results_are_those_of_calls_that_wait():
    total, ends = np.sum(ARRAYS, axis=0), np.cumsum([0, *COUNTS])
    gathered = np.concatenate([a[s : s + n] for a, s, n in zip(ARRAYS, ends, COUNTS, strict=False)])
    for rank, (summed, largest, whole, part) in enumerate(ThreadWorld(3).run(started)):
        np.testing.assert_allclose(summed, total / 2, rtol=1e-6)
        np.testing.assert_array_equal(largest, np.max(ARRAYS, axis=0))
        np.testing.assert_array_equal(whole, gathered)
        np.testing.assert_allclose(part, 2 * total[ends[rank] : ends[rank + 1]], rtol=1e-6)


def test_what_is_started_beside_need_not_come_at_the_same_time_on_all_ranks():
    """One rank starts before a collective of the world, the other after it, far beyond what is compared."""

    def rank(ranks: Communicator) -> float:
        beside, total = ranks.beside(), 0.0
        assert ranks.beside() is beside
        for k in range(CHECKED + 60):
            first = beside.start_all_reduce(np.full(2, float(k))) if ranks.rank else None
            total += float(ranks.all_reduce(np.ones(1))[0])
            total += float((first or beside.start_all_reduce(np.full(2, float(k)))).wait()[0])
        return total

    n = CHECKED + 60
    assert ThreadWorld(2).run(rank) == [2 * n + n * (n - 1)] * 2


@pytest.mark.parametrize("before", [0, CHECKED + 7])
def test_ranks_that_start_different_ones_are_told_what_each_does(before):
    def rank(ranks: Communicator) -> None:
        for _ in range(before):
            ranks.start_all_reduce(np.ones(3)).wait()
        waited([ranks.start_all_reduce(np.ones(4 if ranks.rank else 5))])

    with pytest.raises(
        CollectiveError,
        match=r"start diff.* rank 0: all_reduce_sum float64\[5\]; rank 1: all_reduce_sum float64\[4",
    ):
        ThreadWorld(2).run(rank)


def test_one_rank_and_simulated_ranks_are_done_at_once():
    given = np.arange(3.0)
    np.testing.assert_array_equal(world().start_all_reduce(given, factor=2.0).wait(), 2 * given)
    assert world().start_all_gather(given, [3]).wait() is given
    assert world().beside() is world()
    with pytest.raises(InvalidArgumentError, match="op is 'mean'"):
        world().start_all_reduce(given, "mean")
    report = FakeWorld(4).run(lambda ranks: ranks.beside().start_reduce_scatter(np.ones(8), [2] * 4).wait())
    assert (report.count("reduce_scatter", "world"), report.result.shape) == (1, (2,))


def test_a_timeline_has_them_beside_the_ops():
    def rank(ranks: Communicator) -> list[str]:
        with oprack.Profiler() as profiler:
            transfers = [ranks.start_all_reduce(np.ones(4)) for _ in range(2)]
            oprack.relu(oprack.to_tensor(np.ones(4, "float32")))
            waited(transfers)
        events = profiler.chrome_trace()["traceEvents"]
        lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        op, *sent = [e for kind in ("op", "collective") for e in events if e.get("cat") == kind]
        # they begin before the op and end after it
        assert all(e["ts"] < op["ts"] < op["ts"] + op["dur"] < e["ts"] + e["dur"] for e in sent)
        assert [e["name"] for e in sent] == ["all_reduce_sum float64[4]"] * 2
        return [lanes[e["tid"]] for e in sent]

    assert ThreadWorld(2).run(rank) == [["messages of world, 1", "messages of world, 2"]] * 2
