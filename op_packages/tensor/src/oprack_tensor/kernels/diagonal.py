"""Diagonals: read, written, and made matrices of."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly, numpy_dtype

from oprack_tensor.ops.diagonal import diagonal_size


# shared ---------------------------------------------------------------------------------------------------------------
# Where diagonals are.
def on_diagonal(array: Array, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> tuple[Array, tuple[Any, ...]]:
    """(view with both dims last, index of the diagonal's elements in it)."""
    matrices = xp.moveaxis(array, (axis1, axis2), (-2, -1))
    rows, columns = matrices.shape[-2:]
    i = xp.arange(diagonal_size(rows, columns, offset))
    return matrices, (..., i - min(offset, 0), i + max(offset, 0))


def with_diagonal(shape: tuple[int, ...], values: Array, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> Array:
    """Zeros of a shape, `values` on the diagonal."""
    out = xp.zeros(shape, values.dtype)
    matrices, where = on_diagonal(out, offset, axis1, axis2, xp)
    matrices[where] = values
    return out


# diag -----------------------------------------------------------------------------------------------------------------
@kernel("diag", place=("cpu", "cuda"))
def diag(Diagonal: Array, *, xp: ArrayModule) -> Array:
    """The matrix with this diagonal."""
    return xp.diag(Diagonal)


# diag_embed -----------------------------------------------------------------------------------------------------------
@kernel("diag_embed", place=("cpu", "cuda"))
def diag_embed(Input: Array, *, offset: int, dim1: int, dim2: int, xp: ArrayModule) -> Array:
    """Matrices with Input on a diagonal."""
    size, shape = Input.shape[-1] + abs(offset), list(Input.shape[:-1])
    for axis in sorted(a % (Input.ndim + 1) for a in (dim1, dim2)):
        shape.insert(axis, size)
    return with_diagonal(tuple(shape), Input, offset, dim1, dim2, xp)


# diag_v2 --------------------------------------------------------------------------------------------------------------
@kernel("diag_v2", place=("cpu", "cuda"))
def diag_v2(X: Array, *, offset: int, padding_value: float, xp: ArrayModule) -> Array:
    """A matrix of a vector, the diagonal of a matrix."""
    if X.ndim == 2:
        return xp.diagonal(X, offset).copy()
    out = xp.full((X.size + abs(offset),) * 2, padding_value, X.dtype)
    matrix, where = on_diagonal(out, offset, 0, 1, xp)
    matrix[where] = X.reshape(-1)
    return out


@kernel("diag_v2_grad", place=("cpu", "cuda"))
def diag_v2_grad(X: ShapeOnly, Out_grad: Array, *, offset: int, xp: ArrayModule) -> Array:
    """The other way round."""
    if len(X.shape) == 2:
        return with_diagonal(X.shape, Out_grad, offset, 0, 1, xp)
    return xp.diagonal(Out_grad, offset).copy().reshape(X.shape)


# diagonal -------------------------------------------------------------------------------------------------------------
@kernel("diagonal", place=("cpu", "cuda"))
def diagonal(Input: Array, *, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> Array:
    """The elements of a diagonal, in memory of their own."""
    return xp.diagonal(Input, offset, axis1, axis2).copy()


@kernel("diagonal_grad", place=("cpu", "cuda"))
def diagonal_grad(Input: ShapeOnly, Out_grad: Array, *, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> Array:
    """Out@GRAD on the diagonal."""
    return with_diagonal(Input.shape, Out_grad, offset, axis1, axis2, xp)


# fill_diagonal --------------------------------------------------------------------------------------------------------
def _filled(x: Array, value: float, offset: int, wrap: bool, xp: ArrayModule) -> Array:
    out = x.copy()
    columns = x.shape[-1]
    step = sum(columns**i for i in range(x.ndim))
    end = x.size if wrap or x.ndim > 2 else min(x.size, columns * columns)
    places = xp.arange(0, end, step)
    column = places % max(columns, 1) + offset
    out.reshape(-1)[places[(column >= 0) & (column < columns)] + offset] = value
    return out


@kernel("fill_diagonal", place=("cpu", "cuda"))
def fill_diagonal(X: Array, *, value: float, offset: int, wrap: bool, xp: ArrayModule) -> Array:
    """X with the value on a diagonal."""
    return _filled(X, value, offset, wrap, xp)


@kernel("fill_diagonal_grad", place=("cpu", "cuda"))
def fill_diagonal_grad(Out_grad: Array, *, offset: int, wrap: bool, xp: ArrayModule) -> Array:
    """Out@GRAD with zeros there."""
    return _filled(Out_grad, 0, offset, wrap, xp)


# fill_diagonal_tensor -------------------------------------------------------------------------------------------------
def _fill_diagonal_tensor_filled(
    x: Array, values: Array | int, offset: int, dim1: int, dim2: int, xp: ArrayModule
) -> Array:
    out = x.copy()
    matrices, where = on_diagonal(out, offset, dim1, dim2, xp)
    matrices[where] = values
    return out


@kernel("fill_diagonal_tensor", place=("cpu", "cuda"))
def fill_diagonal_tensor(X: Array, Y: Array, *, offset: int, dim1: int, dim2: int, xp: ArrayModule) -> Array:
    """X with Y on a diagonal."""
    return _fill_diagonal_tensor_filled(X, Y, offset, dim1, dim2, xp)


@kernel("fill_diagonal_tensor_grad", place=("cpu", "cuda"))
def fill_diagonal_tensor_grad(Out_grad: Array, *, offset: int, dim1: int, dim2: int, xp: ArrayModule) -> Array:
    """Out@GRAD with zeros there."""
    return _fill_diagonal_tensor_filled(Out_grad, 0, offset, dim1, dim2, xp)


# tril_indices ---------------------------------------------------------------------------------------------------------
@kernel("tril_indices", place=("cpu", "cuda"), dtypes=("int32", "int64"))
def tril_indices(*, rows: int, cols: int, offset: int, dtype: int, xp: ArrayModule) -> Array:
    """Places on a diagonal and below it."""
    return xp.stack(xp.nonzero(xp.tri(rows, cols, offset, bool))).astype(numpy_dtype(dtype))


# triu_indices ---------------------------------------------------------------------------------------------------------
@kernel("triu_indices", place=("cpu", "cuda"), dtypes=("int32", "int64"))
def triu_indices(*, row: int, col: int, offset: int, dtype: int, xp: ArrayModule) -> Array:
    """Places on a diagonal and above it."""
    return xp.stack(xp.nonzero(~xp.tri(row, col, offset - 1, bool))).astype(numpy_dtype(dtype))
