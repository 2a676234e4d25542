"""Kernels of sparse_sparse_coo_tensor and of its gradient."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor
from oprack.types import BOOL, FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import lookup


@kernel("sparse_sparse_coo_tensor", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_sparse_coo_tensor(values: Array, indices: Array, *, shape: Sequence[int]) -> SparseCooTensor:
    """A tensor over copies of the arrays, after the indices were checked."""
    dims = tuple(shape) or (*(indices.max(axis=1, initial=-1) + 1).tolist(), *values.shape[1:])
    if -1 in dims:  # Paddle writes it for a batch of any size
        known = (*(indices.max(axis=1, initial=-1) + 1).tolist(), *values.shape[1:])
        dims = tuple(k if d == -1 else d for d, k in zip(dims, known, strict=True))
    return SparseCooTensor(indices.copy(), values.copy(), dims)


@kernel("sparse_sparse_coo_tensor_grad", dtypes=FLOATS)
def sparse_sparse_coo_tensor_grad(indices: Array, out_grad: SparseCooTensor) -> Array:
    """The gradient where the values were put."""
    same = out_grad.indices.shape == indices.shape and bool((out_grad.indices == indices).all())
    return out_grad.values.copy() if same else lookup(out_grad, indices)
