"""Datasets: where examples come from; samplers: in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from oprack.eager_tensor.devices import RANDOM
from oprack.errors import InvalidArgumentError


class Dataset:
    """Base of datasets whose examples have numbers: derive from it and define __getitem__ and __len__.

    Any object that has both, such as a list, will do as well.
    """

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(self, index), one example")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__(self), the number of examples")


class IterableDataset:
    """Base of datasets that come as a stream: derive from it and define __iter__."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__(self), which yields examples")


class TensorDataset(Dataset):
    """Rows of arrays or tensors: example i is the tuple of their rows i.

    Args:
        tensors: A list of them, with the same number of rows; or each as an argument of its own.

    Raises:
        InvalidArgumentError: They have different numbers of rows.
    """

    def __init__(self, *tensors: Any) -> None:
        given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
        self.tensors = tuple(t.numpy() if hasattr(t, "numpy") else t for t in given)
        sizes = [len(t) for t in self.tensors]
        if len(set(sizes)) != 1:
            raise InvalidArgumentError(f"TensorDataset: got tensors of {sizes} rows; expected the same number of each")

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """Some examples of a dataset.

    Args:
        dataset: The dataset.
        indices: Which examples.
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, list(indices)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Datasets one after the other.

    Args:
        datasets: The datasets.
    """

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        self._ends = list(accumulate(len(d) for d in self.datasets))

    def __getitem__(self, index: int) -> Any:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"ConcatDataset: example {index}; there are {size}")
        index %= size
        which = next(i for i, end in enumerate(self._ends) if index < end)
        return self.datasets[which][index - (self._ends[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0


def random_split(dataset: Any, lengths: Sequence[float]) -> list[Subset]:
    """Parts of a dataset, in the random order that `oprack.seed` fixes.

    Args:
        dataset: The dataset.
        lengths: How many examples each part has; or shares, which add up to 1.

    Returns:
        The parts.

    Raises:
        InvalidArgumentError: The lengths do not add up to the size of the dataset.
    """
    size = len(dataset)
    sizes = [int(n) for n in lengths]
    if abs(sum(lengths) - 1.0) < 1e-9 and size != 1:
        ends = [round(size * share) for share in accumulate(lengths)]
        sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise InvalidArgumentError(
            f"random_split: lengths are {list(lengths)}; expected numbers that add up to {size}, or shares to 1"
        )
    order = RANDOM.generator("oprack.io.random_split").permutation(size).tolist()
    ends = list(accumulate(sizes))
    return [Subset(dataset, order[end - n : end]) for n, end in zip(sizes, ends, strict=True)]


def repeated(items: Any, role: str) -> Any:
    """The same iterable for loop after loop; an iterator, which only the first loop gets, then says so.

    Args:
        items: The iterable.
        role: What it is, for the error.

    Returns:
        `items` itself where each loop starts anew.
    """
    return _OneLoop(items, role) if isinstance(items, Iterator) else items


class _OneLoop:
    def __init__(self, items: Iterator[Any], role: str) -> None:
        self._items, self._role, self._used = items, role, False

    def __iter__(self) -> Iterator[Any]:
        used, empty = self._used, True
        for item in self._items:
            self._used, empty = True, False
            yield item
        if used and empty:
            raise InvalidArgumentError(
                f"DataLoader: the {self._role} is a {type(self._items).__name__}, which an earlier loop used up, so "
                "there is nothing for this one; expected something that starts anew for each loop: a list, or an "
                "object whose __iter__ is a generator function"
            )

    def __len__(self) -> int:
        return len(self._items)  # type: ignore[arg-type]  # a TypeError of Python's own


class Sampler:
    """Base of samplers: derive from it, and define __iter__, which yields numbers of examples, and __len__.

    Args:
        data_source: The dataset.
    """

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__(self), which yields numbers of examples")

    def __len__(self) -> int:
        return len(self.data_source)


class SequenceSampler(Sampler):
    """All examples in their order."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))


class RandomSampler(Sampler):
    """Examples in random order, another one each time; `oprack.seed` fixes which.

    Args:
        data_source: The dataset.
        replacement: Whether an example may come more than once.
        num_samples: How many to take; default: as many as there are.
    """

    def __init__(self, data_source: Any, replacement: bool = False, num_samples: int | None = None) -> None:
        super().__init__(data_source)
        self.replacement, self.num_samples = replacement, num_samples

    def __iter__(self) -> Iterator[int]:
        generator = RANDOM.generator("oprack.io.RandomSampler")
        size = len(self.data_source)
        if self.replacement:
            return iter(generator.integers(0, size, len(self)).tolist())
        return iter(generator.permutation(size)[: len(self)].tolist())

    def __len__(self) -> int:
        return len(self.data_source) if self.num_samples is None else self.num_samples


class WeightedRandomSampler(Sampler):
    """Examples drawn by weights.

    Args:
        weights: A weight for each example.
        num_samples: How many to draw.
        replacement: Whether an example may come more than once.

    Raises:
        InvalidArgumentError: A weight is negative, or there are too few for num_samples without replacement.
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True) -> None:
        super().__init__()
        self.weights = np.asarray(weights, np.float64)
        if self.weights.ndim != 1 or not (self.weights >= 0).all() or not self.weights.sum() > 0:
            raise InvalidArgumentError("WeightedRandomSampler: expected weights that are not negative, and not all 0")
        if not replacement and num_samples > np.count_nonzero(self.weights):
            raise InvalidArgumentError(
                f"WeightedRandomSampler: num_samples is {num_samples}, and {np.count_nonzero(self.weights)} examples "
                "have a weight; expected at most as many, or replacement=True"
            )
        self.num_samples, self.replacement = num_samples, replacement

    def __iter__(self) -> Iterator[int]:
        generator = RANDOM.generator("oprack.io.WeightedRandomSampler")
        share = self.weights / self.weights.sum()
        return iter(generator.choice(len(share), self.num_samples, self.replacement, share).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler:
    """Lists of numbers of examples, one list for each batch.

    Args:
        dataset: The dataset; None when there is a sampler.
        sampler: Says the order; default: SequenceSampler, or RandomSampler with shuffle.
        shuffle: Whether the order is random.
        batch_size: Number of examples in a batch.
        drop_last: Whether a last batch that is smaller is left out.

    Raises:
        InvalidArgumentError: batch_size is below 1, or there is neither a dataset nor a sampler.
    """

    def __init__(
        self,
        dataset: Any = None,
        sampler: Iterable[int] | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        if batch_size < 1:
            raise InvalidArgumentError(f"BatchSampler: batch_size is {batch_size}; expected at least 1")
        if sampler is None and dataset is None:
            raise InvalidArgumentError("BatchSampler: dataset and sampler are None; expected one of them")
        self.sampler: Any = repeated(sampler, "sampler")
        if sampler is None:
            self.sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        self.batch_size, self.drop_last = batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        size = len(self.sampler)
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)


class TokenBatchSampler:
    """Lists of numbers of examples, one list for each batch, with about as many tokens in each.

    Batches of sequences without padding cost what their tokens cost, however these are spread over sequences: neither
    buckets of like lengths nor an order by length is needed.

    Args:
        lengths: How many tokens each example has.
        max_tokens: How many a batch may have; an example that alone has more is a batch of its own.
        sampler: Says the order; default: SequenceSampler, or RandomSampler with shuffle.
        shuffle: Whether the order is random; the number of batches depends on it, so there is no len() then.
        drop_last: Whether a last batch that others could be added to is left out.

    Raises:
        InvalidArgumentError: max_tokens is below 1, or lengths are no integers of at least 0.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        max_tokens: int,
        sampler: Iterable[int] | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        self.lengths = np.asarray(lengths).reshape(-1)
        if max_tokens < 1:
            raise InvalidArgumentError(f"TokenBatchSampler: max_tokens is {max_tokens}; expected at least 1")
        if (self.lengths.dtype.kind not in "iu" and self.lengths.size) or (self.lengths < 0).any():
            raise InvalidArgumentError(
                f"TokenBatchSampler: lengths are {self.lengths[:8].tolist()}...; expected an integer of at least 0 for "
                "each example"
            )
        self.sampler: Any = repeated(sampler, "sampler")
        if sampler is None:
            self.sampler = RandomSampler(self.lengths) if shuffle else SequenceSampler(self.lengths)
        self.max_tokens, self.drop_last = max_tokens, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        tokens = 0
        for index in self.sampler:
            length = int(self.lengths[index])
            if batch and tokens + length > self.max_tokens:
                yield batch
                batch, tokens = [], 0
            batch.append(index)
            tokens += length
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        if not isinstance(self.sampler, SequenceSampler):
            raise TypeError(
                "TokenBatchSampler has no len() with a sampler or with shuffle=True: how many batches there are "
                "depends on the order"
            )
        return sum(1 for _ in self)
