"""Kernels of sparse_softmax and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import sparse_dims, values_at
from oprack_sparse.kernels.reduce._rows import Rows, rows_of


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
