"""Datasets: where examples come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.interpreter.devices import RANDOM


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
