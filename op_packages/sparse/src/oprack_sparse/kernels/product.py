"""Kernels of ops that multiply matrices."""

from __future__ import annotations

import math

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor, SparseCsrTensor, SparseTensor
from oprack.types import FLOATS
from scipy import sparse

from oprack_sparse.kernels._patterns import coordinates, like, lookup, values_at
from oprack_sparse.kernels.elementwise import combined


# matrices -------------------------------------------------------------------------------------------------------------
# Products of sparse matrices by SciPy; a batch is one matrix with the others along its diagonal.
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


# sparse_addmm ---------------------------------------------------------------------------------------------------------
@kernel("sparse_addmm", dtypes=FLOATS)
def addmm_dense(input: Array, x: SparseTensor, y: Array, *, beta: float, alpha: float) -> Array:
    """A dense sum."""
    number = input.dtype.type
    return number(beta) * input + number(alpha) * times_dense(x, y)


@kernel("sparse_addmm", dtypes=FLOATS)
def addmm_sparse(input: SparseTensor, x: SparseTensor, y: SparseTensor, *, beta: float, alpha: float) -> SparseTensor:
    """A sparse sum."""
    number = input.values.dtype.type
    product = times_sparse(x, y)
    given = input.with_values(number(beta) * input.values), product.with_values(number(alpha) * product.values)
    return combined("sparse_addmm", *given, np.add)


@kernel("sparse_addmm_grad", dtypes=FLOATS)
def addmm_dense_grad(
    input: Array, x: SparseTensor, y: Array, out_grad: Array, *, beta: float, alpha: float
) -> tuple[Array, SparseTensor, Array]:
    """By input, by x and by y."""
    number = out_grad.dtype.type
    by_product = number(alpha) * out_grad
    by_x = x.with_values(inner_at(x, by_product, y))
    return number(beta) * out_grad, by_x, transposed_times_dense(x, by_product)


@kernel("sparse_addmm_grad", dtypes=FLOATS)
def addmm_sparse_grad(
    input: SparseTensor, x: SparseTensor, y: SparseTensor, out_grad: SparseTensor, *, beta: float, alpha: float
) -> tuple[SparseTensor, SparseTensor, SparseTensor]:
    """By input, by x and by y, each over its pattern."""
    number = out_grad.values.dtype.type
    by_product = stacked(out_grad) * number(alpha)
    by_input = input.with_values(number(beta) * values_at(out_grad, input))
    return by_input, at_pattern(x, by_product @ stacked(y).T), at_pattern(y, stacked(x).T @ by_product)


# sparse_masked_matmul -------------------------------------------------------------------------------------------------
@kernel("sparse_masked_matmul", dtypes=FLOATS)
def sparse_masked_matmul(x: Array, y: Array, mask: SparseTensor) -> SparseTensor:
    """The products that the mask lists."""
    return mask.with_values(inner_at(mask, x, np.swapaxes(y, -1, -2)))


@kernel("sparse_masked_matmul_grad", dtypes=FLOATS)
def sparse_masked_matmul_grad(x: Array, y: Array, out_grad: SparseTensor) -> tuple[Array, Array]:
    """By x and by y."""
    by_x = times_dense(out_grad, np.ascontiguousarray(np.swapaxes(y, -1, -2)))
    return by_x, np.ascontiguousarray(np.swapaxes(transposed_times_dense(out_grad, x), -1, -2))


# sparse_matmul --------------------------------------------------------------------------------------------------------
@kernel("sparse_matmul", dtypes=FLOATS)
def sparse_times_dense(x: SparseTensor, y: Array) -> Array:
    """A dense product."""
    return times_dense(x, y)


@kernel("sparse_matmul", dtypes=FLOATS)
def sparse_times_sparse(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """A sparse product."""
    return times_sparse(x, y)


@kernel("sparse_matmul_grad", dtypes=FLOATS)
def sparse_times_dense_grad(x: SparseTensor, y: Array, out_grad: Array) -> tuple[SparseTensor, Array]:
    """By x and by y."""
    return x.with_values(inner_at(x, out_grad, y)), transposed_times_dense(x, out_grad)


@kernel("sparse_matmul_grad", dtypes=FLOATS)
def sparse_times_sparse_grad(
    x: SparseTensor, y: SparseTensor, out_grad: SparseTensor
) -> tuple[SparseTensor, SparseTensor]:
    """By x and by y."""
    gradient = stacked(out_grad)
    return at_pattern(x, gradient @ stacked(y).T), at_pattern(y, stacked(x).T @ gradient)


# sparse_mv ------------------------------------------------------------------------------------------------------------
@kernel("sparse_mv", dtypes=FLOATS)
def sparse_mv(x: SparseTensor, vec: Array) -> Array:
    """A product with one column."""
    return times_dense(x, vec[:, None])[:, 0]


@kernel("sparse_mv_grad", dtypes=FLOATS)
def sparse_mv_grad(x: SparseTensor, vec: Array, out_grad: Array) -> tuple[SparseTensor, Array]:
    """By x and by vec."""
    column = out_grad[:, None]
    return x.with_values(inner_at(x, column, vec[:, None])), transposed_times_dense(x, column)[:, 0]
