"""Sums and maxima over the listed elements of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array
from oprack.tensor import SparseCsrTensor, SparseTensor

from oprack_sparse.kernels._patterns import coordinates, numbered, sparse_dims


def rows_of(op: str, x: SparseTensor, axis: int) -> Array | None:
    """A number for the row along an axis in which each element lies; None for an axis among the dense dims."""
    axis %= len(x.shape)
    dims = sparse_dims(x)
    if isinstance(x, SparseCsrTensor) and axis != len(dims) - 1:
        raise InvalidArgumentError(f"{op}: axis is {axis} for {x!r}; expected -1, since CSR lists row by row; use COO")
    if axis >= len(dims):
        return None
    at = coordinates(x)
    (numbers,) = numbered([*dims[:axis], *dims[axis + 1 :]], np.delete(at, axis, axis=0))
    return numbers


class Rows:
    """Reductions over groups of elements that have the same number."""

    def __init__(self, numbers: Array) -> None:
        self._order = np.argsort(numbers, kind="stable")
        ordered = numbers[self._order]
        self._starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
        self._group = np.empty(len(numbers), np.int64)
        self._group[self._order] = np.cumsum(np.diff(ordered, prepend=ordered[:1]) != 0)

    def reduced(self, ufunc: Any, values: Array) -> Array:
        """A ufunc over each group, for every one of its elements."""
        if not len(values):
            return values
        return ufunc.reduceat(values[self._order], self._starts, axis=0)[self._group]
