"""DataLoader: batches of examples, which workers prepare ahead."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.io.collate import default_collate
from oprack.io.dataset import IterableDataset
from oprack.io.sampler import BatchSampler

_work: tuple[Any, Callable[[list[Any]], Any]] | None = None  # in a worker: the dataset, and what makes a batch


class DataLoader:
    """Batches of a dataset: `for x, label in DataLoader(dataset, batch_size=32, shuffle=True): ...`.

    Args:
        dataset: Something with __getitem__ and __len__, such as a Dataset or a list; or an iterable, for a stream.
        batch_size: Number of examples in a batch; None yields examples as they are.
        shuffle: Whether the order is random, another one each time; `oprack.seed` fixes which.
        drop_last: Whether a last batch that is smaller is left out.
        batch_sampler: Lists of numbers of examples instead of batch_size, shuffle, sampler and drop_last.
        sampler: Numbers of examples, instead of shuffle.
        collate_fn: Makes a batch of a list of examples; default: `default_collate`. `lod_collate` puts sequences of
            different lengths one after the other, without padding.
        num_workers: Processes that prepare batches ahead; 0 prepares them here.
        prefetch_factor: Batches that each worker has ready or in work.
        worker_init_fn: Called in each worker when it starts, with 0.
        timeout: Seconds to wait for a batch of a worker; 0 waits for any time.
        multiprocessing_context: How processes start: "fork", "spawn" or "forkserver"; default: as Python does.

    Raises:
        InvalidArgumentError: Arguments do not go together.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        *,
        batch_sampler: Iterable[list[int]] | None = None,
        sampler: Iterable[int] | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        prefetch_factor: int = 2,
        worker_init_fn: Callable[[int], Any] | None = None,
        timeout: float = 0,
        multiprocessing_context: str | None = None,
    ) -> None:
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.collate_fn, self.num_workers, self.prefetch_factor = collate_fn, num_workers, prefetch_factor
        self.worker_init_fn, self.timeout, self.multiprocessing_context = (
            worker_init_fn,
            timeout,
            multiprocessing_context,
        )
        self.is_stream = isinstance(dataset, IterableDataset) or not (
            hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        )
        if num_workers < 0 or prefetch_factor < 1:
            raise InvalidArgumentError(
                f"DataLoader: num_workers is {num_workers} and prefetch_factor {prefetch_factor}; expected at least "
                "0 and 1"
            )
        if batch_sampler is not None and (batch_size != 1 or shuffle or drop_last or sampler is not None):
            raise InvalidArgumentError(
                "DataLoader: batch_sampler stands for batch_size, shuffle, drop_last and sampler; give it alone"
            )
        if sampler is not None and shuffle:
            raise InvalidArgumentError("DataLoader: sampler says the order; expected it without shuffle")
        if self.is_stream and (shuffle or sampler is not None or batch_sampler is not None or num_workers):
            raise InvalidArgumentError(
                "DataLoader: the dataset is a stream, which has no order of its own and no parts for workers; expected "
                "it without shuffle, sampler, batch_sampler and num_workers"
            )
        self.batch_sampler: Any = batch_sampler
        if batch_sampler is None and not self.is_stream:
            size = 1 if batch_size is None else batch_size
            self.batch_sampler = BatchSampler(dataset, sampler, shuffle, size, drop_last)

    def __len__(self) -> int:
        if self.is_stream:
            raise TypeError("DataLoader: the dataset is a stream, whose number of batches is not known")
        return len(self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        if self.is_stream:
            return self._stream()
        return (
            self._ahead() if self.num_workers else (_batch(*self._parts(), indices) for indices in self.batch_sampler)
        )

    def _parts(self) -> tuple[Any, Callable[[list[Any]], Any]]:
        return self.dataset, self.collate_fn or (default_collate if self.batch_size is not None else _only)

    def _stream(self) -> Iterator[Any]:
        _, collate = self._parts()
        examples = iter(self.dataset)
        size = self.batch_size or 1
        while batch := list(islice(examples, size)):
            if len(batch) == size or not self.drop_last:
                yield collate(batch)

    def _ahead(self) -> Iterator[Any]:
        """Batches in their order, made by worker processes."""
        context = multiprocessing.get_context(self.multiprocessing_context)
        pool = ProcessPoolExecutor(self.num_workers, context, _start, (*self._parts(), self.worker_init_fn))
        waiting: deque[Future[Any]] = deque()
        try:
            for indices in self.batch_sampler:
                waiting.append(pool.submit(_made, indices))
                if len(waiting) >= self.num_workers * self.prefetch_factor:
                    yield waiting.popleft().result(self.timeout or None)
            while waiting:
                yield waiting.popleft().result(self.timeout or None)
        finally:  # also when a loop ends early
            pool.shutdown(wait=False, cancel_futures=True)


def _only(examples: list[Any]) -> Any:
    return examples[0]


def _start(dataset: Any, collate: Callable[[list[Any]], Any], init: Callable[[int], Any] | None) -> None:
    global _work
    _work = dataset, collate
    if init is not None:
        init(0)


def _made(indices: list[int]) -> Any:
    assert _work is not None
    return _batch(*_work, indices)


def _batch(dataset: Any, collate: Callable[[list[Any]], Any], indices: list[int]) -> Any:
    return collate([dataset[i] for i in indices])
