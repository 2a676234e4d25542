"""Patterns of sparse tensors: coordinates, numbers that stand for them, what two have in common, and look-ups."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array
from oprack.tensor import SparseCooTensor, SparseCsrTensor, SparseTensor


def coordinates(x: SparseTensor) -> Array:
    """Int64 [sparse dims, n]: where each listed element lies, in the order in which they are listed."""
    if isinstance(x, SparseCsrTensor):
        return x.coordinates()
    assert isinstance(x, SparseCooTensor)
    return x.indices.astype(np.int64, copy=False)


def numbered(dims: Sequence[int], *indices: Array) -> list[Array]:
    """A number for each coordinate, in the order of the coordinates: equal ones in all lists have the same number.

    Args:
        dims: Sizes of the sparse dims.
        indices: Int64 [sparse dims, n] each.

    Returns:
        Int64 [n] for each list.
    """
    if not dims:
        return [np.zeros(i.shape[1], np.int64) for i in indices]
    if math.prod(dims) < 1 << 62:
        strides = np.array([math.prod(dims[k + 1 :]) for k in range(len(dims))], np.int64)
        return [strides @ i for i in indices]
    # as many numbers as coordinates there are, where a position in the dense tensor has no int64
    _, numbers = np.unique(np.concatenate(indices, axis=1), axis=1, return_inverse=True)
    return np.split(numbers.reshape(-1), np.cumsum([i.shape[1] for i in indices])[:-1])


def merged(numbers: Array, values: Array) -> tuple[Array, Array, Array]:
    """List each number once.

    Args:
        numbers: Int64 [n].
        values: [n, ...].

    Returns:
        (the distinct numbers in ascending order, the sum of each one's values, the position of its first listing).
    """
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    if len(first) == len(ordered):
        return ordered, values[order], order
    total = np.logical_or if values.dtype == bool else np.add
    sums = total.reduceat(values[order], first, axis=0, dtype=values.dtype)
    return ordered[first], sums, order[first]


def coalesced(x: SparseCooTensor) -> SparseCooTensor:
    """The same tensor with each element listed once, sorted by coordinates; never on the memory of x."""
    (numbers,) = numbered(x.shape[: x.sparse_dim], coordinates(x))
    _, values, first = merged(numbers, x.values)
    return SparseCooTensor(x.indices[:, first], values, x.shape, check=False, coalesced=True)


def csr_of(indices: Array, values: Array, shape: Sequence[int]) -> SparseCsrTensor:
    """A tensor in CSR of elements that are sorted by coordinates, each listed once."""
    *batch, rows, _ = shape
    of_row = (indices[0] * rows + indices[1]) if batch else indices[0]
    counts = np.bincount(of_row, minlength=math.prod(batch) * rows).reshape(math.prod(batch), rows)
    crows = np.zeros((len(counts), rows + 1), np.int64)
    np.cumsum(counts, axis=1, out=crows[:, 1:])
    return SparseCsrTensor(crows.reshape(-1), indices[-1].copy(), values, shape, check=False)


def sparse_dims(x: SparseTensor) -> tuple[int, ...]:
    """Sizes of the dims that coordinates count."""
    return x.shape[: x.sparse_dim] if isinstance(x, SparseCooTensor) else x.shape


def like(x: SparseTensor, indices: Array, values: Array, shape: Sequence[int]) -> SparseTensor:
    """A tensor in the layout of x of elements that are sorted by coordinates, each listed once."""
    if isinstance(x, SparseCsrTensor):
        return csr_of(indices, values, shape)
    assert isinstance(x, SparseCooTensor)
    return SparseCooTensor(indices.astype(x.indices.dtype, copy=False), values, shape, check=False, coalesced=True)


def in_order(indices: Array, dims: Sequence[int]) -> Array:
    """The order in which coordinates are sorted."""
    (numbers,) = numbered(dims, indices)
    return np.argsort(numbers, kind="stable")


def same_pattern(x: SparseTensor, y: SparseTensor) -> bool:
    """Whether both list the same elements in the same order."""
    return type(x) is type(y) and all(
        a is b or (a.shape == b.shape and bool((a == b).all())) for a, b in zip(x.pattern, y.pattern, strict=True)
    )


def lookup(x: SparseTensor, indices: Array) -> Array:
    """The elements of x at some coordinates, zero where it lists none.

    Args:
        x: The tensor.
        indices: Integers [sparse dims, n].

    Returns:
        [n, dense dims ...].
    """
    known, wanted = numbered(sparse_dims(x), coordinates(x), indices.astype(np.int64, copy=False))
    numbers, values, _ = merged(known, x.values)
    found = np.zeros((len(wanted), *values.shape[1:]), values.dtype)
    if len(numbers):
        at = np.searchsorted(numbers, wanted)
        at[at == len(numbers)] = 0
        hit = numbers[at] == wanted
        found[hit] = values[at[hit]]
    return found


def values_at(x: SparseTensor, pattern: SparseTensor) -> Array:
    """The elements of x where another tensor lists some, in its order; as a gradient is wanted for what was read."""
    return x.values if same_pattern(x, pattern) else lookup(x, coordinates(pattern))
