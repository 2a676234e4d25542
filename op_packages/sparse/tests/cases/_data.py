"""Sparse tensors of dense arrays, and gradients by differences, for the cases of this pack."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from oprack.tensor import SparseCooTensor, SparseCsrTensor, SparseTensor


def drawn(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """Float32 numbers of which none is near zero, so that no slope is at a kink."""
    found = np.random.default_rng(seed).uniform(low, high, shape)
    return np.where(np.abs(found) < 0.05, 0.3, found).astype(np.float32)


def holes(array: np.ndarray, seed: int = 0, sparse_dim: int | None = None) -> np.ndarray:
    """The array with about half of its elements zero, or of its blocks of dense dims."""
    count = array.ndim if sparse_dim is None else sparse_dim
    keep = np.random.default_rng(seed + 100).random(array.shape[:count]) < 0.5
    return array * keep.reshape(*keep.shape, *(1,) * (array.ndim - count))


def coo(array: np.ndarray, sparse_dim: int | None = None) -> SparseCooTensor:
    """What is not zero, by coordinates."""
    count = array.ndim if sparse_dim is None else sparse_dim
    present = (array != 0).any(axis=tuple(range(count, array.ndim)))
    indices = np.stack(np.nonzero(present))
    return SparseCooTensor(indices, array[tuple(indices)], array.shape)


def csr(array: np.ndarray) -> SparseCsrTensor:
    """What is not zero, by rows."""
    counts = np.count_nonzero(array, axis=-1).reshape(-1, array.shape[-2])
    crows = np.concatenate([np.zeros((len(counts), 1), np.int64), counts.cumsum(axis=1)], axis=1).reshape(-1)
    return SparseCsrTensor(crows, np.nonzero(array)[-1], array[array != 0], array.shape)


def at(x: SparseTensor) -> tuple[np.ndarray, ...]:
    """An index of the listed elements in the dense array."""
    return tuple(x.coordinates() if isinstance(x, SparseCsrTensor) else x.indices)


def picked(x: SparseTensor, array: np.ndarray) -> SparseTensor:
    """x with the elements of a dense array where it lists some."""
    return x.with_values(array[at(x)].astype(x.values.dtype))


def slopes(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The gradient of sum(weights * function(x)) by central differences in double precision."""
    x, found, step = x.astype(np.float64), np.zeros(x.shape), 1e-6
    for i in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[i] += step
        behind[i] -= step
        found[i] = ((function(ahead) - function(behind)) * weights).sum() / (2 * step)
    return found.astype(np.float32)


HYBRID = coo(holes(drawn(3, 4, 2), sparse_dim=2), 2)
BATCH = csr(holes(drawn(2, 3, 4, seed=1), seed=1))
MATRIX = csr(holes(drawn(3, 4, seed=2), seed=2))
POINTS = coo(holes(drawn(3, 4, seed=3), seed=3))
TWICE = SparseCooTensor([[2, 0, 2, 0], [1, 1, 1, 3]], drawn(4, seed=4), [3, 4])
NOTHING = SparseCooTensor(np.zeros((2, 0), np.int64), np.zeros(0, np.float32), [3, 4])
