"""Kernels of sparse_mv and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels.product._matrices import inner_at, times_dense, transposed_times_dense


@kernel("sparse_mv", dtypes=FLOATS)
def sparse_mv(x: SparseTensor, vec: Array) -> Array:
    """A product with one column."""
    return times_dense(x, vec[:, None])[:, 0]


@kernel("sparse_mv_grad", dtypes=FLOATS)
def sparse_mv_grad(x: SparseTensor, vec: Array, out_grad: Array) -> tuple[SparseTensor, Array]:
    """By x and by vec."""
    column = out_grad[:, None]
    return x.with_values(inner_at(x, column, vec[:, None])), transposed_times_dense(x, column)[:, 0]
