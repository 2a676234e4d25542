"""Kernels of sparse_matmul and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels.product._matrices import (
    at_pattern,
    inner_at,
    stacked,
    times_dense,
    times_sparse,
    transposed_times_dense,
)


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
