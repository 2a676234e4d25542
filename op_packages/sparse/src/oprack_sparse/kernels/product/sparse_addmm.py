"""Kernels of sparse_addmm and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at
from oprack_sparse.kernels.elementwise._family import combined
from oprack_sparse.kernels.product._matrices import (
    at_pattern,
    inner_at,
    stacked,
    times_dense,
    times_sparse,
    transposed_times_dense,
)


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
