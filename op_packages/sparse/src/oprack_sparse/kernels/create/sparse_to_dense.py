"""Kernels of sparse_to_dense and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor
from oprack.types import BOOL, FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import coordinates


@kernel("sparse_to_dense", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_to_dense(x: SparseTensor) -> Array:
    """All elements."""
    return x.to_dense()


@kernel("sparse_to_dense_grad", dtypes=FLOATS)
def sparse_to_dense_grad(x: SparseTensor, out_grad: Array) -> SparseTensor:
    """The gradient of the listed elements."""
    return x.with_values(out_grad[tuple(coordinates(x))])
