"""Data for training: data sets, samplers, DataLoader, and batches of sequences without padding."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import io
from oprack.errors import InvalidArgumentError, WorkerError, WorkerTimeoutError


class Squares(io.Dataset):
    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return np.full(2, index**2, np.float32), index

    def __len__(self) -> int:
        return 7


class Stream(io.IterableDataset):
    def __iter__(self) -> Iterator[int]:
        return iter(range(5))


def test_batches_come_in_order_and_the_last_is_smaller() -> None:
    batches = list(io.DataLoader(Squares(), batch_size=3))
    assert [b[1].tolist() for b in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches[1][0].numpy().tolist() == [[9, 9], [16, 16], [25, 25]]
    loader = io.DataLoader(Squares(), batch_size=3, drop_last=True)
    assert len(loader) == len(list(loader)) == 2


def test_the_seed_says_the_order() -> None:
    loader = io.DataLoader(Squares(), batch_size=7, shuffle=True)
    oprack.seed(5)
    first, second = next(iter(loader))[1].tolist(), next(iter(loader))[1].tolist()
    oprack.seed(5)
    assert next(iter(loader))[1].tolist() == first != second
    assert sorted(first) == sorted(second) == list(range(7))


def test_workers_give_the_same_batches() -> None:
    alone = [b[0].numpy() for b in io.DataLoader(Squares(), batch_size=2)]
    loader = io.DataLoader(Squares(), batch_size=2, num_workers=2)
    for found, wanted in zip(loader, alone, strict=True):
        np.testing.assert_array_equal(found[0].numpy(), wanted)
    assert next(iter(loader))[1].tolist() == [0, 1]  # a loop that ends early


class Calls(io.Dataset):
    """Examples that a function makes."""

    def __init__(self, make: Callable[[int], Any], size: int = 12) -> None:
        self.make, self.size = make, size

    def __getitem__(self, index: int) -> Any:
        return self.make(index)

    def __len__(self) -> int:
        return self.size


DRAWS = {
    "random": lambda i: random.random(),
    "numpy": lambda i: np.random.rand(),
    "oprack": lambda i: oprack.rand([1]).item(),
    "dropout": lambda i: float(
        oprack.functional.dropout(oprack.ones([64]), dropout_prob=0.5).numpy() @ np.exp2(-np.arange(64.0))
    ),
}


@pytest.mark.parametrize("draw", DRAWS)
def test_draws_differ_everywhere_and_are_the_same_for_any_number_of_workers(draw: str) -> None:
    """Each example of each of three loops sees another number; the seed alone says which."""
    found = {}
    for workers, persistent in ((0, False), (1, False), (4, False), (4, True)):
        loader = io.DataLoader(
            Calls(DRAWS[draw]), 2, collate_fn=list, num_workers=workers, persistent_workers=persistent
        )
        oprack.seed(3)
        found[workers, persistent] = [v for _ in range(3) for batch in loader for v in batch]
        assert len({round(v, 6) for v in found[workers, persistent]}) == 36
    assert len({tuple(v) for v in found.values()}) == 1
    oprack.seed(4)
    assert not {v for batch in loader for v in batch} & set(found[0, False])


def test_a_loop_leaves_the_draws_outside_alone() -> None:
    def outside() -> tuple[float, ...]:
        return random.random(), np.random.rand(), oprack.rand([1]).item()

    loader = io.DataLoader(Calls(DRAWS["numpy"]), 2)
    random.seed(1), np.random.seed(1), oprack.seed(1)
    wanted = [outside() for _ in range(7)]
    random.seed(1), np.random.seed(1), oprack.seed(1)
    assert [outside(), *(outside() for _ in loader)] == wanted


def _info(index: int) -> tuple[int, int, int]:
    info = io.get_worker_info()
    assert info is not None and len(info.dataset) == 12
    time.sleep(0.01)
    return info.id, info.num_workers, info.seed


def test_workers_know_who_they_are() -> None:
    assert io.get_worker_info() is None
    started = multiprocessing.get_context("fork").SimpleQueue()
    loader = io.DataLoader(Calls(_info), 1, num_workers=3, collate_fn=list, worker_init_fn=started.put)
    found = {info for batch in loader for info in batch}
    assert {(id, count) for id, count, _ in found} == {(0, 3), (1, 3), (2, 3)} and len(
        {seed for *_, seed in found}
    ) == 3
    assert sorted(started.get() for _ in range(3)) == [0, 1, 2] and started.empty()


def test_persistent_workers_go_on() -> None:
    loader = io.DataLoader(Calls(lambda i: os.getpid()), 1, num_workers=2, collate_fn=list, persistent_workers=True)
    first = {p for batch in loader for p in batch}
    next(iter(loader))  # a loop that ends early, whose batches the next one does not get
    assert first >= {p for batch in loader for p in batch} and len(first) <= 2
    one, two = iter(loader), iter(loader)
    assert len({*next(one), *next(two)}) == 2  # two loops at a time have workers of their own
    del one, two, loader
    assert not multiprocessing.active_children()


class Picture(Exception):
    """An exception that does not unpickle."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class Lock(Exception):
    """An exception that does not even pickle."""

    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = multiprocessing.Lock()


class Mute(Exception):
    """An exception without a text."""

    def __str__(self) -> str:
        raise RuntimeError


def _raise(error: Any) -> Callable[[int], Any]:
    def make(index: int) -> Any:
        if index == 5:
            raise error() if callable(error) else error
        return index

    return make


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("error", [KeyError("no cat"), FileNotFoundError(2, "gone", "cat.jpg"), Picture("cat", "cut")])
def test_an_exception_in_a_worker_reaches_the_loop(error: Exception, workers: int) -> None:
    with pytest.raises(type(error)) as caught:
        list(io.DataLoader(Calls(_raise(error)), 2, num_workers=workers))
    assert str(caught.value) == str(error)
    assert getattr(caught.value, "path", None) == getattr(error, "path", None)
    notes = "\n".join(caught.value.__notes__)
    assert "came from example 5 of the dataset" in notes
    assert not workers or ("raised in worker " in notes and "in make\n" in notes)
    assert not multiprocessing.active_children()


def test_an_exception_that_can_not_be_sent_is_told() -> None:
    with pytest.raises(WorkerError, match=r"(?s)Lock: locked\n.*raised in worker 0 .*in make\n.*from example 5 of"):
        list(io.DataLoader(Calls(_raise(Lock)), 2, num_workers=1))
    with pytest.raises(WorkerError, match=r"(?s)Mute: \n.*raised in worker 0 .*in make\n"):
        list(io.DataLoader(Calls(_raise(Mute)), 2, num_workers=1))
    with pytest.raises(TypeError, match=r"generator") as caught:
        list(io.DataLoader(Calls(lambda i: i), 2, num_workers=1, collate_fn=lambda batch: (x for x in batch)))
    assert "raised in worker 0" in caught.value.__notes__[0]
    with pytest.raises(OSError, match="no disk"):
        list(io.DataLoader(Calls(lambda i: i), num_workers=2, worker_init_fn=lambda id: _raise(OSError("no disk"))(5)))


def test_a_worker_that_is_late_or_gone_is_named() -> None:
    def slow(index: int) -> int:
        time.sleep(60 if index == 5 else 0)
        return index

    start = time.monotonic()
    with pytest.raises(WorkerTimeoutError, match=r"timeout=0\.2 seconds from worker 0 .* at example 5 of .*\[4, 5\]"):
        list(io.DataLoader(Calls(slow), 2, num_workers=1, timeout=0.2))
    assert issubclass(WorkerTimeoutError, TimeoutError) and time.monotonic() - start < 10
    assert not multiprocessing.active_children()
    for how, text in (
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"was killed by SIGKILL; .* example 5 .*memory ran out"),
        (lambda: os._exit(3), r"ended with exit status 3; it was at example 5 of the batch of examples \[4, 5\]"),
    ):
        with pytest.raises(WorkerError, match=r"worker \d \(process \d+\) " + text):
            list(io.DataLoader(Calls(lambda i, how=how: how() if i == 5 else i), 2, num_workers=2))
        assert not multiprocessing.active_children()


def test_large_batches_and_long_lists_of_indices_block_nothing() -> None:
    """Both directions of a pipe are full at a time."""
    data = io.TensorDataset(np.arange(400_000.0))
    loader = io.DataLoader(data, 50_000, num_workers=2, prefetch_factor=4, collate_fn=lambda rows: np.asarray(rows))
    assert sum(float(batch.sum()) for batch in loader) == 400_000 * 399_999 / 2


PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
from oprack.io import DataLoader

class Data:
    def __len__(self): return 8
    def __getitem__(self, i):
        if i == 5 and sys.argv[2] != "all": time.sleep(30)
        return np.random.rand()

if __name__ == "__main__":
    loader = DataLoader(Data(), 2, num_workers=2, multiprocessing_context=sys.argv[1], collate_fn=list)
    if sys.argv[2] == "all":
        print([v for b in loader for v in b])
    elif sys.argv[2] == "abandoned":
        batches = iter(loader)
        next(batches)
    else:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
        threading.Timer(0.5, os.killpg, (0, signal.SIGINT)).start()
        list(loader)
"""


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "-W", "ignore", "program.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        start_new_session=True,
        check=False,
    )


def test_every_way_to_start_processes_gives_the_same(tmp_path: Path) -> None:
    found = {method: _run(tmp_path, method, "all") for method in ("fork", "spawn", "forkserver")}
    assert all(not run.stderr and run.stdout for run in found.values()), found
    assert len({run.stdout for run in found.values()}) == 1
    with pytest.raises(InvalidArgumentError, match=r"starts by 'spawn' takes dataset.* by pickle.*lambda"):
        list(io.DataLoader(Calls(lambda i: i), num_workers=1, multiprocessing_context="spawn"))


def test_ctrl_c_and_an_end_in_the_middle_are_quiet(tmp_path: Path) -> None:
    """The process ends at once, with a traceback of the main process at most, though a worker sleeps."""
    start = time.monotonic()
    run = _run(tmp_path, "fork", "interrupted")
    assert run.stderr.count("Traceback") == 1 and run.stderr.rstrip().endswith("KeyboardInterrupt")
    run = _run(tmp_path, "fork", "abandoned")
    assert (run.returncode, run.stderr) == (0, "") and time.monotonic() - start < 20


def test_what_only_one_loop_gets_says_so_in_the_next() -> None:
    for loader in (
        io.DataLoader([1, 2, 3], sampler=iter([2, 0])),
        io.DataLoader([1, 2, 3], batch_sampler=([i] for i in (2, 0))),
        io.DataLoader(x for x in (1, 2)),
    ):
        assert len(list(loader)) == 2
        with pytest.raises(InvalidArgumentError, match=r"sampler is|dataset is .*which an earlier loop used up"):
            list(loader)
    assert list(io.DataLoader([1, 2, 3], sampler=iter([]))) == []
    endless = io.DataLoader([1], sampler=iter(lambda: 0, 1))
    assert next(iter(endless)).tolist() == next(iter(endless)).tolist() == [1]


@pytest.mark.parametrize("size", [0, -1])
@pytest.mark.parametrize("data", [[1, 2], Stream()])
def test_batch_sizes_below_1_are_refused(data: Any, size: int) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"batch_size is {size}; expected at least 1"):
        io.DataLoader(data, batch_size=size)


def test_keys_of_mappings_agree() -> None:
    for examples in ([{"x": 1}, {"x": 2, "y": 3}], [{"x": 1, "y": 2}, {"x": 3}]):
        with pytest.raises(InvalidArgumentError, match=r"differ in their keys: \['y'\]"):
            io.default_collate(examples)


def test_empty_sequences_say_nothing_of_the_dtype() -> None:
    ids = [np.asarray(part, None if part else np.float64) for part in ([7, 2**60 + 1], [], [3])]
    batch = io.lod_collate(ids)
    assert batch.dtype == "int64" and batch.tolist() == [7, 2**60 + 1, 3] and batch.lod == [[0, 2, 2, 3]]
    rows = io.lod_collate([np.asarray([]), np.ones((2, 3), np.float32)])
    assert rows.dtype == "float32" and rows.shape == (2, 3) and rows.lod == [[0, 0, 2]]
    assert io.lod_collate([np.zeros(0, np.int32), np.zeros(0, np.int32)]).dtype == "int32"
    with pytest.raises(InvalidArgumentError, match="float32, int32"):
        io.lod_collate([np.ones(2, np.int32), np.ones(2, np.float32)])


def test_sequences_are_joined_without_padding() -> None:
    examples = [(np.full((n, 2), n, np.float32), n % 2) for n in (3, 1, 4)]
    (rows, labels), *rest = io.DataLoader(examples, batch_size=3, collate_fn=io.lod_collate)
    assert not rest and rows.lod == [[0, 3, 4, 8]] and rows.shape == (8, 2) and labels.tolist() == [[1], [1], [0]]
    sums = oprack.functional.sequence_pool(rows, pooltype="SUM")
    sums = sums.out if isinstance(sums, tuple) else sums
    assert sums.numpy().tolist() == [[9, 9], [1, 1], [16, 16]]
    with pytest.raises(InvalidArgumentError, match=r"collate_fn=oprack\.io\.lod_collate"):
        list(io.DataLoader(examples, batch_size=3))


def test_dicts_text_and_streams() -> None:
    batch = next(iter(io.DataLoader([{"x": 1.5, "name": "a"}, {"x": 2.5, "name": "b"}], batch_size=2)))
    assert batch["name"] == ["a", "b"] and batch["x"].dtype == "float32" and batch["x"].tolist() == [1.5, 2.5]
    assert [b.tolist() for b in io.DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(TypeError, match="stream"):
        len(io.DataLoader(Stream()))
    with pytest.raises(InvalidArgumentError, match="stream"):
        io.DataLoader(Stream(), shuffle=True)


def test_parts_of_data_sets() -> None:
    table = io.TensorDataset([np.arange(6).reshape(3, 2), oprack.arange(3)])
    assert len(table) == 3 and table[1][0].tolist() == [2, 3] and int(table[1][1]) == 1
    joined = io.ConcatDataset([[1, 2], [3]])
    assert [joined[i] for i in (0, 2, -1)] == [1, 3, 3] and len(joined) == 3
    parts = io.random_split(range(10), [0.7, 0.3])
    assert [len(p) for p in parts] == [7, 3] and sorted([*parts[0], *parts[1]]) == list(range(10))
    assert set(io.WeightedRandomSampler([0, 1, 0, 2], 20)) <= {1, 3}
    assert list(io.BatchSampler(sampler=[4, 2, 0], batch_size=2)) == [[4, 2], [0]]
    with pytest.raises(InvalidArgumentError, match=r"tensors of \[3, 2\] rows"):
        io.TensorDataset(np.zeros(3), np.zeros(2))
    with pytest.raises(InvalidArgumentError, match="add up to 4"):
        io.random_split(range(4), [1, 2])
