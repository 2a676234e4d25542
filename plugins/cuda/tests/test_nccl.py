"""NCCL's communicator over a strict stand-in for cupy.cuda.nccl, on ranks that are threads, against NumPy."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest
from oprack.errors import CollectiveError, InvalidArgumentError
from oprack.parallel import Communicator, communicator, transfers
from oprack.parallel.watchdog import EXIT_STATUS, Watchdog
from oprack.parallel.world import engines, init, use_world
from oprack.tensor import CUDAPlace
from oprack.testing.worlds import ThreadWorld
from oprack_cuda.nccl import NCCLCommunicator
from oprack_cuda.testing import StrictArray, StrictDeviceContext, nccl

REDUCED = ("float16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "int64", "bool", "complex64")


def on_gpus(ranks: int, function: Any) -> list[Any]:
    """What each rank returns, whose world is NCCL's over threads."""

    def rank(host: Communicator) -> Any:
        world = NCCLCommunicator(host, StrictDeviceContext(CUDAPlace(0)), nccl)
        with use_world(world):
            return function(world)

    return ThreadWorld(ranks).run(rank)


def device(array: np.ndarray) -> StrictArray:
    return StrictArray(np.ascontiguousarray(array))


def host(x: Any) -> np.ndarray:
    assert isinstance(x, StrictArray)
    return x._host


def data(rank: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = np.random.default_rng(rank).integers(0, 5, shape)
    return (values > 2 if dtype == "bool" else values).astype(dtype) * (1 + 1j if dtype.startswith("c") else 1)


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("in_place", [False, True])
def test_all_reduce(dtype, in_place):
    arrays = [data(r, (3, 2), dtype).astype(dtype) for r in range(3)]
    want = sum(a.astype("complex128") for a in arrays)

    def rank(world: Communicator) -> Any:
        given = device(arrays[world.rank].copy())
        found = world.all_reduce(given, in_place=in_place)
        assert in_place or np.array_equal(given._host, arrays[world.rank])
        return found.dtype, host(found)

    if dtype == "bool":
        want = want.astype(bool)
    elif not dtype.startswith("complex"):
        want = want.real
    for kind, found in on_gpus(3, rank):
        assert (kind, found.shape) == (np.dtype(dtype), (3, 2))
        np.testing.assert_array_equal(found, want.astype(dtype))


@pytest.mark.parametrize(("op", "function"), [("max", np.max), ("min", np.min), ("prod", np.prod)])
def test_other_reductions(op, function):
    arrays = np.random.default_rng(0).standard_normal((2, 4)).astype("float32")
    for found in on_gpus(2, lambda world: host(world.all_reduce(device(arrays[world.rank]), op))):
        np.testing.assert_allclose(found, function(arrays, axis=0), rtol=1e-6)
    with pytest.raises(InvalidArgumentError, match="all_reduce 'max' of complex64"):
        on_gpus(2, lambda world: world.all_reduce(device(arrays.astype("complex64")), "max"))


@pytest.mark.parametrize("counts", [(2, 2, 2), (3, 0, 1)])
@pytest.mark.parametrize("dtype", ["float32", "bool", "int16", "complex64"])
def test_parts_of_any_size(counts, dtype):
    whole = data(0, (sum(counts), 2), dtype).astype(dtype)
    ends = np.cumsum([0, *counts])

    def rank(world: Communicator) -> Any:
        r = world.rank
        gathered = world.all_gather(device(whole[ends[r] : ends[r + 1]]), counts)
        mine = world.reduce_scatter(device(whole), counts)
        return host(gathered), host(mine)

    for r, (gathered, mine) in enumerate(on_gpus(3, rank)):
        np.testing.assert_array_equal(gathered, whole)
        assert mine.dtype == np.dtype(dtype)
        part = whole[ends[r] : ends[r + 1]]
        np.testing.assert_array_equal(mine, part if dtype == "bool" else 3 * part)


def test_moves():
    def rank(world: Communicator) -> Any:
        r, n = world.rank, world.size
        parts = [device(np.full((r, k + 1), 10 * r + k, "float32")) for k in range(n)]
        got = world.all_to_all(parts, [(k, r + 1) for k in range(n)])
        for k, x in enumerate(got):
            np.testing.assert_array_equal(host(x), np.full((k, r + 1), 10 * k + r))
        spread = host(world.broadcast(device(np.full(3, r, "int64")), 1))
        group = world.split(r % 2, r, "odd and even")
        members = host(group.all_gather(device(np.array([r]))))
        if r == 0:
            world.send(device(np.arange(4.0)), 1)
        elif r == 1:
            np.testing.assert_array_equal(host(world.receive((4,), np.float64, 0)), np.arange(4.0))
        return spread.tolist(), group.size, members.tolist()

    for r, found in enumerate(on_gpus(2, rank)):
        assert found == ([1, 1, 1], 1, [r])


def test_arrays_of_the_host_and_facts_go_by_the_hosts():
    def rank(world: Communicator) -> Any:
        flags = world.all_reduce(np.array([world.rank], np.uint8), "max")
        assert isinstance(flags, np.ndarray)
        return flags.tolist(), world.gather_facts(world.rank), world.place

    assert on_gpus(2, rank) == [([1], [0, 1], CUDAPlace(0))] * 2


def test_ranks_that_differ_are_told_what_both_run():
    with pytest.raises(
        CollectiveError, match=r"rank 0: all_reduce_sum float32\[1\]; rank 1: all_reduce_sum float32\[2"
    ):
        on_gpus(2, lambda world: world.all_reduce(device(np.ones(1 + world.rank, "float32"))))


def test_the_engine_is_known_and_says_what_is_missing():
    assert engines()["nccl"] == ("oprack-cuda", "oprack_cuda.nccl:open_world")
    with pytest.raises(Exception, match=r"engine nccl can't be used|is open with engine"):
        init("nccl")


def test_what_is_started_goes_on_a_stream_of_its_own():
    arrays = [data(r, (5, 2), "int16").astype("int16") for r in range(3)]
    counts, total = [3, 0, 2], sum(arrays)

    def rank(world: Communicator) -> Any:
        beside = world.beside()
        first = beside.start_all_reduce(device(arrays[world.rank]), factor=2.0)
        second = beside.start_reduce_scatter(device(arrays[world.rank]), counts)
        side = beside._side
        assert (side.ptr, side.waited, len(side.open)) == (1, 2, 2)  # each waited for what was computed before
        assert first.test()
        found = host(second.wait()), host(first.wait())
        assert side.open == []  # and the kernels that come now for both
        assert beside.start_all_gather(np.full(3, world.rank), [1] * 3).wait().tolist() == [0, 1, 2]
        assert host(beside.start_all_gather(device(np.full(5, world.rank)), counts).wait()).tolist() == [0, 0, 0, 2, 2]
        assert world._side is None
        return found

    for part, (scattered, summed) in zip(np.split(total, [3, 3]), on_gpus(3, rank), strict=True):
        np.testing.assert_array_equal(summed, 2 * total)
        np.testing.assert_array_equal(scattered, part)


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("broken", ["", "unhandled system error"])
def test_a_collective_that_does_not_end_on_the_device_ends_the_program(started, broken, monkeypatch, capsys):
    watchdog = Watchdog()
    for module in (communicator, transfers):
        monkeypatch.setattr(module, "WATCHDOG", watchdog)
    monkeypatch.setattr(nccl, "enqueues", True)
    monkeypatch.setenv("OPRACK_COLLECTIVE_TIMEOUT", "60" if broken else "0.4")
    monkeypatch.setenv("OPRACK_CHECK_COLLECTIVES", "0")
    ended = threading.Event()
    told: list[tuple[int, str]] = []

    def rank(world: Any) -> tuple[bool, list[str]]:
        group = world.beside() if started else world
        first = device(np.ones(3, "float32"))
        group.start_all_reduce(first).wait() if started else group.all_reduce(first)
        if world.rank:  # it goes on with something else
            ended.wait(10)
            return group._comm.aborted, []
        group._host.abort = lambda code, reason: (told.append((code, reason)), ended.set())
        second = device(np.ones((2, 5), "float32"))
        found = group.start_all_reduce(second).wait() if started else group.all_reduce(second)
        assert found.shape == (2, 5)  # the host does not wait
        group._comm.broken = broken
        assert ended.wait(10)
        return group._comm.aborted, watchdog.recent()

    (aborted, recent), _ = on_gpus(2, rank)
    assert aborted
    assert len(told) == 1
    assert told[0][0] == EXIT_STATUS
    assert re.search(r"in collective number \d+ of world: all_reduce_sum float32\[2, 5\]", told[0][1])
    assert (broken or "waited for more than 0.4 s") in told[0][1]
    err = capsys.readouterr().err
    assert "rank 0 of 2" in err
    assert re.search(
        rf"all_reduce_sum float32\[3\]\n.*all_reduce_sum float32\[2, 5\], (not done|failed: {broken})", err
    )
    assert recent
