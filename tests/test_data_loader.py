"""Data for training: data sets, samplers, DataLoader, and batches of sequences without padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import io
from oprack.errors import InvalidArgumentError


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


class Broken(Squares):
    def __getitem__(self, index: int) -> Any:
        raise KeyError(f"no example {index}")


def test_an_error_in_a_worker_reaches_the_loop() -> None:
    with pytest.raises(KeyError, match="no example 0"):
        list(io.DataLoader(Broken(), num_workers=1))


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
