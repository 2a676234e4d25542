"""Products of sparse matrices by SciPy; a batch is one matrix with the others along its diagonal."""

from __future__ import annotations

import math

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array
from oprack.tensor import SparseCooTensor, SparseCsrTensor, SparseTensor
from scipy import sparse

from oprack_sparse.kernels._patterns import coordinates, like, lookup


def stacked(x: SparseTensor) -> sparse.csr_array:
    """The matrices of a batch along the diagonal: [batch * rows, batch * columns]."""
    *batch, rows, columns = x.shape
    count = math.prod(batch)
    if isinstance(x, SparseCsrTensor):
        offsets = x.crows.astype(np.int64).reshape(count, rows + 1)
        ends = np.cumsum(offsets[:, -1])
        starts = ends - offsets[:, -1]
        pointers = np.append((offsets[:, :-1] + starts[:, None]).reshape(-1), ends[-1] if count else 0)
        cols = x.cols + np.repeat(np.arange(count) * columns, offsets[:, -1]) if batch else x.cols
        return sparse.csr_array((x.values, cols, pointers), shape=(count * rows, count * columns))
    if len(x.shape) != len(coordinates(x)):
        raise InvalidArgumentError(f"x is {x!r} with dense dims; expected a sparse matrix, or a batch, without them")
    row, column = _places(x)
    return sparse.csr_array((x.values, (row, column)), shape=(count * rows, count * columns))


def _places(x: SparseTensor) -> tuple[Array, Array]:
    """Rows and columns of the listed elements in the stacked matrix."""
    *batch, row, column = coordinates(x)
    if not batch:
        return row, column
    return batch[0] * x.shape[-2] + row, batch[0] * x.shape[-1] + column


def times_dense(x: SparseTensor, y: Array) -> Array:
    """x y of a dense y."""
    found = stacked(x) @ y.reshape(-1, y.shape[-1])
    return np.asarray(found, x.values.dtype).reshape(*x.shape[:-1], y.shape[-1])


def transposed_times_dense(x: SparseTensor, y: Array) -> Array:
    """The transposed x times a dense y."""
    found = stacked(x).T @ y.reshape(-1, y.shape[-1])
    return np.asarray(found, x.values.dtype).reshape(*x.shape[:-2], x.shape[-1], y.shape[-1])


def times_sparse(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """x y of a sparse y, in the layout of x."""
    return unstacked(x, stacked(x) @ stacked(y), (*x.shape[:-1], y.shape[-1]))


def unstacked(x: SparseTensor, found: sparse.csr_array, shape: tuple[int, ...]) -> SparseTensor:
    """A stacked matrix as a tensor in the layout of x."""
    found = sparse.csr_array(found)
    found.sum_duplicates()  # sorts as well
    row = np.repeat(np.arange(found.shape[0], dtype=np.int64), np.diff(found.indptr))
    column = found.indices.astype(np.int64)
    if len(shape) == 3:
        indices = np.stack([row // shape[1], row % shape[1], column % shape[2]])
    else:
        indices = np.stack([row, column])
    return like(x, indices, found.data, shape)


def inner_at(pattern: SparseTensor, x: Array, y: Array) -> Array:
    """Inner products of rows of x with rows of y where a pattern lists (row, column): [n].

    Args:
        pattern: Sparse [m, n], or a batch.
        x: [m, k], or a batch.
        y: [n, k], or a batch.
    """
    row, column = _places(pattern)
    return np.einsum("ij,ij->i", x.reshape(-1, x.shape[-1])[row], y.reshape(-1, y.shape[-1])[column])


def at_pattern(pattern: SparseTensor, found: sparse.csr_array) -> SparseTensor:
    """The elements of a stacked matrix where a tensor lists some, as a tensor of its layout and pattern."""
    full = SparseCooTensor(
        np.stack(sparse.coo_array(found).coords), sparse.coo_array(found).data, found.shape, check=False
    )
    return pattern.with_values(lookup(full, np.stack(_places(pattern))))
