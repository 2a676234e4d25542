"""Buckets: tensors of one dtype and place whose values travel between ranks as one flat array."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.errors import InvalidArgumentError
from oprack.parallel.layouts.layout import balanced

ALONE = 1 << 20
"""Tensors of so many bytes have a bucket of their own: to copy them into another one costs more than a message."""


class Bucket:
    """Some tensors, one after the other.

    Args:
        tensors: Tensors of one dtype and place, in the same order on every rank.

    Attributes:
        tensors: The tensors.
        offsets: Where each begins in the flat array, and at last where it ends.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = list(tensors)
        self.offsets = list(itertools.accumulate((t._value.size for t in self.tensors), initial=0))

    def empty(self) -> Any:
        """A flat array that is not initialised."""
        return np.empty_like(self.tensors[0]._value, shape=(self.offsets[-1],), order="C")

    def flat(self, values: Sequence[Any]) -> Any:
        """One flat array of one value for each tensor, for reading: a new one where there are several.

        Args:
            values: Arrays of the tensors' shapes; None counts as zeros.

        Returns:
            The flat array.
        """
        if len(values) == 1 and values[0] is not None and values[0].flags.c_contiguous:
            return values[0].reshape(-1)
        flat = self.empty()
        for value, target in zip(values, self.views(flat), strict=True):
            target[...] = 0 if value is None else value
        return flat

    def views(self, flat: Any) -> list[Any]:
        """The parts of a flat array, each in the shape of its tensor and on the same memory."""
        ends = itertools.pairwise(self.offsets)
        return [flat[a:b].reshape(t._value.shape) for t, (a, b) in zip(self.tensors, ends, strict=True)]

    def counts(self, ranks: int) -> list[int]:
        """How many elements each rank has of the flat array when it is split as evenly as can be."""
        return [b - a for a, b in (balanced(self.offsets[-1], ranks, r) for r in range(ranks))]

    def pieces(self, ranks: int) -> list[list[tuple[int, int]]]:
        """For each tensor, (start, stop) of what each rank has of its elements when the flat array is split."""
        shares = [balanced(self.offsets[-1], ranks, r) for r in range(ranks)]
        return [
            [(max(a, min(start, b)) - a, max(a, min(stop, b)) - a) for start, stop in shares]
            for a, b in itertools.pairwise(self.offsets)
        ]


def buckets(tensors: Sequence[Tensor], size: int) -> Iterator[Bucket]:
    """Put tensors into buckets, in order, but for large ones, each of which has a bucket of its own.

    Args:
        tensors: The tensors.
        size: About so many bytes go into a bucket.

    Yields:
        The buckets.
    """
    found: list[Tensor] = []
    total = 0
    for t in tensors:
        if t._value.nbytes >= ALONE:
            yield Bucket([t])
            continue
        if found and (t._meta.dtype != found[0]._meta.dtype or t.place != found[0].place or total >= size):
            yield Bucket(found)
            found, total = [], 0
        found.append(t)
        total += t._value.nbytes
    if found:
        yield Bucket(found)


def bucket_bytes(bucket_mb: float, owner: str) -> int:
    """The size of a bucket in bytes. Raises InvalidArgumentError unless it is larger than 0."""
    if not bucket_mb > 0:
        raise InvalidArgumentError(f"{owner}: bucket_mb is {bucket_mb!r}; expected more than 0")
    return int(bucket_mb * (1 << 20))


def for_reading(array: Any) -> Any:
    """An array in memory of all ranks as tensors of this rank have it: nothing else may write there."""
    if isinstance(array, np.ndarray):
        array = array.view()
        array.flags.writeable = False
    return array
