"""DataLoader: batches of examples, which workers prepare ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any

import numpy as np
from oprack.data.dataset import BatchSampler, IterableDataset, repeated
from oprack.data.workers import WorkerPool, kept_draws, make_batch, seed_draws
from oprack.eager_tensor.devices import RANDOM
from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import to_tensor


def default_collate(examples: Sequence[Any]) -> Any:
    """Arrays, tensors and numbers of one shape as a tensor with a new first dim; tuples, lists and dicts part by part.

    Args:
        examples: The examples of a batch.

    Returns:
        A tensor, or tensors in lists and dicts as the examples have them; text stays a list.

    Raises:
        InvalidArgumentError: Arrays differ in their shapes, or dicts in their keys.
    """
    return _collated(examples, _stacked)


def lod_collate(examples: Sequence[Any]) -> Any:
    """Arrays of different lengths one after the other, without padding, as a tensor with LoD; else as default_collate.

    A batch of sequences [3, 8], [5, 8] is a tensor [8, 8] whose lod is [[0, 3, 8]], as sequence ops take it. Numbers,
    such as a label for each example, are rows [batch, 1]. An empty sequence counts for the offsets alone: its dtype,
    which is float64 for np.asarray([]), says nothing.

    Args:
        examples: The examples of a batch.

    Returns:
        Tensors, in lists and dicts as the examples have them; text stays a list.

    Raises:
        InvalidArgumentError: Arrays differ in other dims than the first, or some have integers and some floats.
    """
    return _collated(examples, _joined)


def _collated(examples: Sequence[Any], join: Any) -> Any:
    first = examples[0]
    if isinstance(first, Mapping):
        if odd := {key for e in examples for key in first.keys() ^ e.keys()}:
            raise InvalidArgumentError(
                f"a batch has examples that differ in their keys: {sorted(odd, key=repr)} are in some of them only; "
                "expected the same keys in each"
            )
        return {key: _collated([e[key] for e in examples], join) for key in first}
    if isinstance(first, tuple | list):
        if len({len(e) for e in examples}) > 1:
            raise InvalidArgumentError(
                f"a batch has examples of {sorted({len(e) for e in examples})} parts; expected as many of each; a "
                "sequence of numbers belongs into an array: np.asarray(numbers)"
            )
        return [_collated(part, join) for part in zip(*examples, strict=True)]
    if isinstance(first, str | bytes) or first is None:
        return list(examples)
    return join([np.asarray(e) for e in examples])


def _stacked(arrays: list[np.ndarray]) -> Any:
    shapes = {a.shape for a in arrays}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            f"a batch has arrays of shapes {', '.join(map(str, sorted(shapes)[:4]))}; expected one shape; for "
            "sequences of different lengths pass collate_fn=oprack.io.lod_collate, which needs no padding"
        )
    array = np.stack(arrays)
    return to_tensor(array.astype(np.float32) if array.dtype == np.float64 and not _is_array(arrays) else array)


def _is_array(arrays: list[np.ndarray]) -> bool:
    """Whether examples are arrays; Python's numbers have no dims, and floats among them become float32."""
    return arrays[0].ndim > 0


def _joined(arrays: list[np.ndarray]) -> Any:
    if not arrays[0].ndim:
        return _stacked([a.reshape(1) for a in arrays])
    full = [a for a in arrays if len(a)] or arrays[:1]  # np.asarray([]) is float64, and no sequence of that dtype
    rest = {a.shape[1:] for a in (*full, *arrays) if a.shape != (0,)} or {()}
    if len(rest) > 1:
        raise InvalidArgumentError(
            f"a batch has sequences whose rows have shapes {', '.join(map(str, sorted(rest)[:4]))}; expected one shape"
        )
    if len({a.dtype.kind for a in full}) > 1:
        raise InvalidArgumentError(
            f"a batch has sequences of {', '.join(sorted({a.dtype.name for a in full}))}; expected one kind of numbers"
        )
    return to_tensor(np.concatenate(full), lod=[[0, *accumulate(len(a) for a in arrays)]])


class DataLoader:
    """Batches of a dataset: `for x, label in DataLoader(dataset, batch_size=32, shuffle=True): ...`.

    What the dataset and collate_fn draw at random, by Python's `random`, NumPy's global generator or ops of oprack,
    follows from `oprack.seed`, the loop and the number of the batch: other numbers in each batch and each loop, and the
    same ones for any number of workers. Draws outside go on from where they were. A generator that the dataset holds
    itself is not set; in workers it can start from `oprack.io.get_worker_info().seed`.

    An exception in a worker is raised in the loop, with the example and the worker's traceback in its notes.

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
        worker_init_fn: Called in each worker when it starts, with its number: 0 to num_workers - 1.
        timeout: Seconds to wait for a batch of a worker, then the workers are ended; 0 waits for any time.
        multiprocessing_context: How processes start: "fork", "spawn" or "forkserver"; default: as Python does.
        persistent_workers: Whether workers, with their copies of the dataset, remain for the next loop.

    Raises:
        InvalidArgumentError: Arguments do not go together. In a loop: an iterator, such as a generator, was used up by
            an earlier loop, or the dataset can't be sent to a process.
        WorkerError: In a loop: a worker was killed, or raised what can't be raised again in another process.
        WorkerTimeoutError: In a loop: a batch did not come in time.
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
        persistent_workers: bool = False,
    ) -> None:
        self.batch_size, self.drop_last = batch_size, drop_last
        self.dataset = repeated(dataset, "dataset")
        self.collate_fn, self.num_workers, self.prefetch_factor = collate_fn, num_workers, prefetch_factor
        self.worker_init_fn, self.timeout, self.multiprocessing_context = (
            worker_init_fn,
            timeout,
            multiprocessing_context,
        )
        self.persistent_workers = persistent_workers
        self._idle: WorkerPool | None = None  # workers that wait for the next loop
        self.is_stream = isinstance(dataset, IterableDataset) or not (
            hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        )
        if num_workers < 0 or prefetch_factor < 1 or timeout < 0:
            raise InvalidArgumentError(
                f"DataLoader: num_workers is {num_workers}, prefetch_factor {prefetch_factor} and timeout {timeout}; "
                "expected at least 0, 1 and 0"
            )
        if batch_size is not None and batch_size < 1:
            raise InvalidArgumentError(
                f"DataLoader: batch_size is {batch_size}; expected at least 1, or None for examples as they are"
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
        self.batch_sampler: Any = repeated(batch_sampler, "batch_sampler")
        if batch_sampler is None and not self.is_stream:
            size = 1 if batch_size is None else batch_size
            self.batch_sampler = BatchSampler(dataset, sampler, shuffle, size, drop_last)

    def __len__(self) -> int:
        if self.is_stream:
            raise TypeError("DataLoader: the dataset is a stream, whose number of batches is not known")
        return len(self.batch_sampler)

    def __call__(self) -> Iterator[Any]:
        """The batches of one epoch, as Paddle's loops ask for them: `for batch in loader():`.

        Returns:
            The iterator of `iter(loader)`.
        """
        return iter(self)

    def __iter__(self) -> Iterator[Any]:
        if self.is_stream:
            return self._stream()
        base = int(RANDOM.generator("oprack.io.DataLoader").integers(2**63))
        return self._ahead(base) if self.num_workers else self._here(base)

    def _collate(self) -> Callable[[list[Any]], Any]:
        return self.collate_fn or (default_collate if self.batch_size is not None else _only)

    def _stream(self) -> Iterator[Any]:
        collate = self._collate()
        examples = iter(self.dataset)
        size = self.batch_size or 1
        while batch := list(islice(examples, size)):
            if len(batch) == size or not self.drop_last:
                yield collate(batch)

    def _here(self, base: int) -> Iterator[Any]:
        collate, twister = self._collate(), np.random.MT19937(0)
        for number, indices in enumerate(self.batch_sampler):
            with kept_draws():
                seed_draws(twister, base, number)
                batch = make_batch(self.dataset, collate, indices)
            yield batch

    def _ahead(self, base: int) -> Iterator[Any]:
        """Batches in their order, made by worker processes."""
        pool, self._idle = self._idle, None
        if pool is None:
            pool = WorkerPool(
                self.dataset,
                self._collate(),
                self.num_workers,
                self.worker_init_fn,
                self.multiprocessing_context,
                base,
            )
        try:
            yield from pool.batches(self.batch_sampler, base, self.num_workers * self.prefetch_factor, self.timeout)
        finally:  # also when a loop ends early
            if self.persistent_workers and not pool.broken and self._idle is None:
                self._idle = pool
            else:
                pool.close()


def _only(examples: list[Any]) -> Any:
    return examples[0]
