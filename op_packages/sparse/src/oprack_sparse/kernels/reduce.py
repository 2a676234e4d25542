"""Kernels of ops over elements of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor, SparseCsrTensor, SparseTensor, numpy_dtype
from oprack.types import BOOL, FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import coordinates, like, lookup, merged, numbered, sparse_dims, values_at
from oprack_sparse.kernels.shape import numbers


# rows -----------------------------------------------------------------------------------------------------------------
# Sums and maxima over the listed elements of each row.
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


# sparse_softmax -------------------------------------------------------------------------------------------------------
def softmax_of(values: Array, rows: Rows) -> Array:
    """softmax over each row."""
    power = np.exp(values - rows.reduced(np.maximum, values))
    return power / rows.reduced(np.add, power)


def _dense_axis(x: SparseTensor, axis: int) -> int:
    return axis % len(x.shape) - len(sparse_dims(x)) + 1


@kernel("sparse_softmax", dtypes=FLOATS)
def sparse_softmax(x: SparseTensor, *, axis: int) -> SparseTensor:
    """softmax over the listed elements."""
    numbers = rows_of("sparse_softmax", x, axis)
    if numbers is not None:
        return x.with_values(softmax_of(x.values, Rows(numbers)))
    along = _dense_axis(x, axis)
    power = np.exp(x.values - x.values.max(axis=along, keepdims=True, initial=-np.inf))
    return x.with_values(power / power.sum(axis=along, keepdims=True))


@kernel("sparse_softmax_grad", dtypes=FLOATS)
def sparse_softmax_grad(out: SparseTensor, out_grad: SparseTensor, *, axis: int) -> SparseTensor:
    """By x, over the same rows."""
    gradient, numbers = values_at(out_grad, out), rows_of("sparse_softmax", out, axis)
    product = out.values * gradient
    if numbers is not None:
        total = Rows(numbers).reduced(np.add, product)
    else:
        total = product.sum(axis=_dense_axis(out, axis), keepdims=True)
    return out.with_values(out.values * (gradient - total))


# sparse_sum -----------------------------------------------------------------------------------------------------------
def _axis(x: SparseTensor, given: list[int]) -> int | None:
    """The axis from the front; None for all elements."""
    if not given:
        return None
    (axis,) = given
    if isinstance(x, SparseCsrTensor) and axis % len(x.shape) != len(x.shape) - 1:
        raise InvalidArgumentError(f"sparse_sum: axis is {axis} for {x!r}; expected -1 or none of CSR; use COO")
    return axis % len(x.shape)


def _moved(x: SparseTensor, axis: int | None, keepdim: bool) -> tuple[Array, tuple[int, ...], tuple[int, ...]]:
    """Where the sum of each element is put: (coordinates, their dims, axes of the values that are summed)."""
    at, dims = coordinates(x), sparse_dims(x)
    least = 2 if isinstance(x, SparseCsrTensor) else 1
    if axis is None:
        count = len(dims) if keepdim else least
        return np.zeros((count, at.shape[1]), np.int64), (1,) * count, tuple(range(1, x.values.ndim))
    if axis >= len(dims):
        return at, dims, (axis - len(dims) + 1,)
    if keepdim or len(x.shape) <= least:
        return np.where(np.arange(len(at))[:, None] == axis, 0, at), (*dims[:axis], 1, *dims[axis + 1 :]), ()
    return np.delete(at, axis, axis=0), (*dims[:axis], *dims[axis + 1 :]), ()


@kernel("sparse_sum", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_sum(
    x: SparseTensor,
    AxisTensor: Array | None = None,
    AxisTensorList: list[Array] | None = None,
    *,
    axis: Sequence[int],
    dtype: int,
    keepdim: bool,
) -> SparseTensor:
    """Sums of the listed elements, sorted by coordinates."""
    indices, dims, dense = _moved(x, _axis(x, numbers(axis, AxisTensor, AxisTensorList)), keepdim)
    values = x.values
    if dtype >= 0:
        values = values.astype(numpy_dtype(dtype))
    elif values.dtype.kind in "iub":
        values = values.astype(np.int64)
    if dense:
        values = values.sum(axis=dense, keepdims=keepdim, dtype=values.dtype)
    (places,) = numbered(dims, indices)
    _, sums, first = merged(places, values)
    found = indices[:, first]
    if not len(sums) and not axis:  # the sum of nothing is zero
        found, sums = np.zeros((len(dims), 1), np.int64), np.zeros((1, *sums.shape[1:]), sums.dtype)
    return like(x, found, sums, (*dims, *sums.shape[1:]))


@kernel("sparse_sum_grad", dtypes=FLOATS | INTEGERS)
def sparse_sum_grad(
    x: SparseTensor,
    out_grad: SparseTensor,
    AxisTensor: Array | None = None,
    AxisTensorList: list[Array] | None = None,
    *,
    axis: Sequence[int],
    keepdim: bool,
) -> SparseTensor:
    """The gradient of each sum for all its terms."""
    indices, _, dense = _moved(x, _axis(x, numbers(axis, AxisTensor, AxisTensorList)), keepdim)
    found = lookup(out_grad, indices).astype(x.values.dtype, copy=False)
    if dense and not keepdim:
        found = np.expand_dims(found, dense)
    if isinstance(x, SparseCooTensor):
        found = np.broadcast_to(found, x.values.shape).copy()
    return x.with_values(found)
