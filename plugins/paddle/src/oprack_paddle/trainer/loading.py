"""paddle.io: data sets and the batches of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from oprack import io


class DataLoader(io.DataLoader):
    """Batches of a data set, made by other processes where num_workers is not 0; each is a list of tensors."""

    def __init__(
        self, dataset: Any, feed_list: Any = None, places: Any = None, return_list: bool = True,
        batch_sampler: Any = None,
        batch_size: Any = 1, shuffle: bool = False, drop_last: bool = False, collate_fn: Any = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True, prefetch_factor: int = 2, use_shared_memory: bool = True, timeout: float = 0,
        worker_init_fn: Any = None, persistent_workers: bool = False,
    ) -> None:  # fmt: skip
        given: dict[str, Any] = {"batch_sampler": batch_sampler} if batch_sampler is not None else {
            "batch_size": batch_size, "shuffle": shuffle, "drop_last": drop_last,
        }  # fmt: skip
        self.return_list, self.feed_list = return_list, feed_list
        super().__init__(
            dataset, collate_fn=collate_fn, num_workers=num_workers, prefetch_factor=prefetch_factor,
            worker_init_fn=worker_init_fn,
            timeout=timeout, persistent_workers=persistent_workers, **given,
        )  # fmt: skip

    def __iter__(self) -> Iterator[Any]:
        for batch in super().__iter__():
            yield list(batch) if isinstance(batch, tuple) else batch

    def __call__(self) -> Iterator[Any]:
        return iter(self)


class ComposeDataset(io.Dataset):
    """Samples of several data sets of one length, joined."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)
        if len({len(d) for d in self.datasets}) != 1:
            raise AssertionError("ComposeDataset: the data sets have different lengths; expected one length")

    def __len__(self) -> int:
        return len(self.datasets[0])

    def __getitem__(self, index: int) -> Any:
        found: list[Any] = []
        for dataset in self.datasets:
            sample = dataset[index]
            found += list(sample) if isinstance(sample, list | tuple) else [sample]
        return tuple(found)


class ChainDataset(io.IterableDataset):
    """One stream after the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from dataset


class SubsetRandomSampler(io.Sampler):
    """Some numbers in a random order."""

    def __init__(self, indices: Any) -> None:
        if len(indices) == 0:
            raise ValueError("SubsetRandomSampler: indices is empty; expected numbers of samples")
        self.indices = list(indices)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices[i] for i in np.random.permutation(len(self.indices)).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class DistributedBatchSampler(io.BatchSampler):
    """The batches of one rank: the samples are dealt out, so that each rank gets as many."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        num_replicas: Any = None,
        rank: Any = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        from oprack_paddle.spaces import ranks

        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.nranks = ranks.get_world_size() if num_replicas is None else num_replicas
        self.local_rank = ranks.get_rank() if rank is None else rank
        self.epoch = 0
        self.num_samples = math.ceil(len(dataset) / self.nranks)
        self.total_size = self.num_samples * self.nranks

    def __iter__(self) -> Iterator[list[int]]:
        order = np.arange(len(self.dataset)).tolist()
        order += order[: self.total_size - len(order)]
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(order)
            self.epoch += 1
        mine: list[int] = []
        whole = self.total_size // (self.batch_size * self.nranks) * self.batch_size * self.nranks
        for start in range(self.local_rank * self.batch_size, whole, self.batch_size * self.nranks):
            mine += order[start : start + self.batch_size]
        tail = (self.total_size - whole) // self.nranks
        mine += order[whole + self.local_rank * tail : whole + (self.local_rank + 1) * tail]
        for start in range(0, len(mine), self.batch_size):
            batch = mine[start : start + self.batch_size]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        return self.num_samples // self.batch_size if self.drop_last else math.ceil(self.num_samples / self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """The number from which the next order is drawn."""
        self.epoch = epoch
