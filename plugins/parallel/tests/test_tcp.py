"""Ranks that meet by TCP: collectives as those of ranks that are threads, who is let in, and what launchers say."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack_parallel.tcp.connections
import pytest
from oprack.errors import CollectiveError, InvalidArgumentError
from oprack.parallel import Communicator
from oprack.parallel.world import _MPI, launched_engine
from oprack.testing.worlds import ThreadWorld
from oprack_parallel.tcp.communicator import RankLostError, TCPCommunicator
from oprack_parallel.tcp.connections import Connections
from oprack_parallel.tcp.launchers import Start, first_node, started

DTYPES = ("float32", "float16", "bool", "int8", "complex64")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(rank: int, size: int, port: int, token: bytes = b"t") -> Start:
    return Start("a test", rank, size, "127.0.0.1", range(port, port + 16), token)


def ranks(size: int, function: Callable[[Communicator], Any]) -> list[Any]:
    """What each rank returns, or the exception that it raises; ranks are threads with connections of their own."""
    port, found = free_port(), [None] * size

    def rank(r: int) -> None:
        connections = None
        try:
            connections = Connections(start(r, size, port))
            found[r] = function(TCPCommunicator(connections, "world", range(size), r, "world"))
        except Exception as e:
            found[r] = e
        finally:
            if connections is not None:
                connections.close()

    threads = [threading.Thread(target=rank, args=(r,), daemon=True) for r in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return found


def everything(world: Communicator) -> list[np.ndarray]:
    """Results of all collectives, for few and many bytes; sums of whole numbers, which no order of adding changes."""
    n, r = world.size, world.rank
    found: list[Any] = []
    for size in (0, 1, 7, 40_003):
        for dtype in DTYPES:
            x = (np.arange(size) * (r + 1) % 5).astype(dtype)
            found += [
                world.all_reduce(x, op) for op in ("sum", "prod", "max", "min")[: 2 if dtype == "complex64" else 4]
            ]
            assert found[-1] is not x
    found += [world.all_reduce(np.array(r, "f8")), world.all_reduce(np.full((300, 70), r, "f4"), in_place=True)]
    rows = [(k * 3) % 4 for k in range(n)]  # some have none
    found.append(world.all_gather(np.full((rows[r], 5), r, np.int16), rows))
    found.append(world.all_gather(np.full((2, 9_000), r, np.float64)))
    whole = np.arange(sum(rows) * 30_000, dtype=np.float32).reshape(-1, 30_000) % 7 + r
    found.append(world.reduce_scatter(whole, rows))
    parts = [np.full((r + 1, k), 10 * r + k, np.float16) for k in range(n)]
    found += world.all_to_all(parts, [(k + 1, r) for k in range(n)])
    found += [world.broadcast(np.full((3, 2), r, "i8"), root) for root in range(n)]
    inner = world.split(r % 2, -r, "half")
    found += [inner.all_reduce(np.array([r])), inner.all_gather(np.array([r])), np.array([inner.rank, inner.size])]
    if n > 1 and r < 2:
        if r == 0:
            world.send(np.arange(100_000.0), 1)
        else:
            found.append(world.receive((100_000,), np.float64, 0))
    return found


@pytest.mark.parametrize("size", [2, 3, 5])
def test_collectives_are_those_of_threads(size):
    """Of ranks whose arrays are exchanged in one process and added by NumPy, rank after rank."""
    wanted = ThreadWorld(size).run(everything)
    for own, other in zip(ranks(size, everything), wanted, strict=True):
        if isinstance(own, Exception):
            raise own
        assert [(x.dtype, x.shape) for x in own] == [(x.dtype, x.shape) for x in other]
        for a, b in zip(own, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_started_goes_on_while_ranks_speak():
    """Of each sort one, of few and of many bytes, started at other times on each rank than what the world exchanges."""

    def function(world: Communicator) -> list[np.ndarray]:
        beside, counts = world.beside(), [7, 0, 9][: world.size]
        rows = slice(sum(counts[: world.rank]), sum(counts[: world.rank + 1]))
        found = []
        for width in (3, 9000):
            x = np.arange(16.0 * width, dtype="f4").reshape(16, width) % 97 + world.rank
            whole = np.empty_like(x)
            whole[rows] = x[rows]
            if world.rank == 1:
                found.append(world.all_reduce(np.ones(5)))
            transfers = [
                beside.start_all_reduce(x, factor=0.5),
                beside.start_all_gather(whole, counts),
                beside.start_reduce_scatter(x, counts),
            ]
            if world.rank != 1:
                found.append(world.all_reduce(np.ones(5)))
            found += [t.wait() for t in reversed(transfers)]
        return found

    for own, other in zip(ranks(3, function), ThreadWorld(3).run(function), strict=True):
        if isinstance(own, Exception):
            raise own
        for a, b in zip(own, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_facts_of_any_length_come_in_the_order_of_ranks():
    found = ranks(3, lambda world: world.gather_facts({"rank": world.rank, "text": "ü" * 50_000 * world.rank}))
    assert found == [[{"rank": r, "text": "ü" * 50_000 * r} for r in range(3)]] * 3


def test_sums_are_equal_to_the_last_bit_on_all_ranks():
    def summed(world: Communicator) -> bytes:
        x = np.random.default_rng(world.rank).standard_normal(50_000).astype("f4")
        return world.all_reduce(x).tobytes() + world.all_reduce(x[:99]).tobytes()

    assert len(set(ranks(5, summed))) == 1


def test_a_message_to_one_rank_does_not_get_between_collectives():
    def function(world: Communicator) -> list[float]:
        if world.rank == 0:
            world.send(np.full(3, 7.0), 1)
        total = world.all_reduce(np.ones(3))
        return list(total) if world.rank == 0 else list(world.receive((3,), np.float64, 0))

    assert ranks(2, function) == [[2.0] * 3, [7.0] * 3]


def test_ranks_whose_arrays_differ_are_told(monkeypatch):
    monkeypatch.setenv("OPRACK_CHECK_COLLECTIVES", "0")
    found = ranks(2, lambda world: world.all_reduce(np.ones(4 + world.rank)))
    assert all(isinstance(e, CollectiveError) for e in found)
    said = r"sent (40|32) bytes of all_reduce, where this rank waits for (32|40) bytes of all_reduce"
    assert any(re.search(said, str(e)) for e in found)  # the one that sees it first closes its connection


def test_a_rank_that_ends_is_named_at_once():
    def function(world: Communicator) -> Any:
        world.barrier()
        return world.all_reduce(np.ones(3)) if world.rank else None

    found = ranks(3, function)
    assert [type(e) for e in found[1:]] == [RankLostError] * 2
    assert any("rank 0 has ended, or the connection to it is lost" in str(e) for e in found)


def test_a_rank_that_ended_before_it_was_spoken_to_is_named_too(monkeypatch):
    monkeypatch.setattr(oprack_parallel.tcp.connections, "_PROBE", 0.2)

    def function(world: Communicator) -> Any:
        return world.receive((3,), np.float64, 1) if world.rank == 0 else None

    assert "rank 1 has ended" in str(ranks(2, function)[0])


def test_strangers_are_not_let_in():
    port = free_port()

    def function(world: Communicator) -> Any:
        if world.rank == 0:
            for said in (b"GET / HTTP/1.1\r\n\r\n" * 20, b"", b"oprack ranks 1\n" + b"\xff" * 4_000):
                with socket.create_connection(world._connections.addresses[0]) as stranger:
                    stranger.sendall(said)
        world.barrier()
        return float(world.all_reduce(np.ones(1))[0])

    assert ranks(2, function) == [2.0, 2.0]
    hosts: list[Any] = []
    host = threading.Thread(target=lambda: hosts.append(Connections(start(0, 2, port))), daemon=True)
    host.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPRACK_COLLECTIVE_TIMEOUT", "0.3")
        with pytest.raises(CollectiveError, match=r"did not find rank 0 .*belongs to another job, or has"):
            Connections(start(1, 2, port, token=b"another"))
    Connections(start(1, 2, port)).close()
    host.join(10)
    hosts[0].close()


def test_a_port_that_another_program_has_is_passed_over(monkeypatch):
    monkeypatch.setattr(oprack_parallel.tcp.connections, "_KNOCK", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port, found = other.getsockname()[1], []
        first = threading.Thread(target=lambda: found.append(Connections(start(0, 2, port))), daemon=True)
        first.start()
        joined = Connections(start(1, 2, port))
        assert joined.addresses[0][1] > port
        joined.close()
        first.join(60)
        found[0].close()


@pytest.mark.parametrize(
    ("second", "message"),
    [((1, 3), "rank 1 was told of 3 ranks, rank 0 of 2"), ((7, 2), "rank 7 of 2 can't be")],
)
def test_ranks_that_contradict_each_other_do_not_meet(second, message, monkeypatch):
    monkeypatch.setenv("OPRACK_COLLECTIVE_TIMEOUT", "1")
    port, found = free_port(), []

    def host() -> None:
        try:
            Connections(start(0, 2, port))
        except CollectiveError as e:
            found.append(str(e))

    thread = threading.Thread(target=host, daemon=True)
    thread.start()
    with pytest.raises(InvalidArgumentError, match=message):
        Connections(start(*second, port))
    thread.join(10)
    assert "these did not come: 1. Do they reach" in found[0]


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        (
            {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"},
            (3, 8, "node0", 29500),
        ),
        (
            {
                **{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "::1", "MASTER_PORT": "29500"},
                **{"TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_USE_AGENT_STORE": "True"},
            },
            (0, 2, "::1", 29501),
        ),
        (
            {
                "PADDLE_TRAINER_ID": "1",
                "PADDLE_TRAINERS_NUM": "2",
                "PADDLE_TRAINER_ENDPOINTS": "a:61000,b:61000",
            },
            (1, 2, "a", 61000),
        ),
        (
            {
                "SLURM_PROCID": "5",
                "SLURM_STEP_NUM_TASKS": "6",
                "SLURM_STEP_NODELIST": "g[07-9]",
                "SLURM_JOB_ID": "40",
            },
            (5, 6, "g07", 61440 + 680),
        ),
        (
            {"RANK": "1", "WORLD_SIZE": "2", "OPRACK_MEETING": "[fd00::1]:4000"},
            (1, 2, "fd00::1", 4000),
        ),
    ],
)
def test_what_launchers_say(variables, wanted):
    found = started(variables)
    assert (found.rank, found.size, found.host, found.ports[0]) == wanted


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "no launcher said which rank this process is"),
        ({"RANK": "1", "WORLD_SIZE": "2"}, "expected a name or an address, and a port"),
        ({"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "says rank 2 of 2"),
        ({"RANK": "x", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "RANK='x'; expected a number"),
    ],
)
def test_what_launchers_say_and_can_not_be(variables, message):
    with pytest.raises(InvalidArgumentError, match=message):
        started(variables)


@pytest.mark.parametrize(
    ("nodes", "first"), [("a1", "a1"), ("a1,b2", "a1"), ("n[01-04,7],m1", "n01"), ("n[3]-ib,x", "n3-ib")]
)
def test_the_first_node_of_slurm(nodes, first):
    assert first_node(nodes) == first


@pytest.mark.parametrize(
    ("variables", "engine"),
    [
        ({}, ""),
        ({"PMI_SIZE": "4"}, "mpi"),
        ({"PMI_SIZE": "1"}, ""),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "tcp"),
        ({"RANK": "0", "WORLD_SIZE": "1"}, ""),
        ({"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2"}, "tcp"),
        # mpiexec started ranks of a program that wants Paddle's variables, or torch's
        ({"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2", "PMI_SIZE": "2"}, "mpi"),
        # srun started torchrun once a machine
        ({"RANK": "0", "WORLD_SIZE": "8", "SLURM_NTASKS": "2"}, "tcp"),
        ({"RANK": "0", "WORLD_SIZE": "2", "SLURM_NTASKS": "2", "TORCHELASTIC_RUN_ID": "none"}, "tcp"),
        ({"RANK": "0", "WORLD_SIZE": "1", "SLURM_NTASKS": "2", "TORCHELASTIC_RUN_ID": "none"}, ""),
    ],
)
def test_the_engine_is_that_of_the_launcher(variables, engine, monkeypatch):
    for name in (*_MPI, "RANK", "WORLD_SIZE", "PADDLE_TRAINERS_NUM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert launched_engine() == engine
