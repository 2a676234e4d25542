"""Kernels that changes of the layout share."""

from __future__ import annotations

from oprack.kernel import Array
from oprack.tensor import SparseTensor

from oprack_sparse.kernels._patterns import values_at


def dense_grad(x: Array, out_grad: SparseTensor) -> Array:
    """The gradient of a dense tensor."""
    return out_grad.to_dense()


def sparse_grad(x: SparseTensor, out_grad: SparseTensor) -> SparseTensor:
    """The gradient over the pattern of a sparse tensor."""
    return x.with_values(values_at(out_grad, x).copy())
