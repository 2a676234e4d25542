"""Kernels of sparse_to_sparse_coo and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor, SparseCsrTensor
from oprack.types import BOOL, FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import coordinates
from oprack_sparse.kernels.create._convert import dense_grad, sparse_grad

ALL = FLOATS | INTEGERS | BOOL


@kernel("sparse_to_sparse_coo", dtypes=ALL)
def dense_to_coo(x: Array, *, sparse_dim: int) -> SparseCooTensor:
    """The elements, or blocks of dense dims, that are not all zero."""
    present = x != 0
    if sparse_dim < x.ndim:
        present = present.any(axis=tuple(range(sparse_dim, x.ndim)))
    indices = np.stack(np.nonzero(present)).astype(np.int64)
    return SparseCooTensor(indices, x[tuple(indices)], x.shape, check=False, coalesced=True)


@kernel("sparse_to_sparse_coo", dtypes=ALL)
def csr_to_coo(x: SparseCsrTensor, *, sparse_dim: int) -> SparseCooTensor:
    """The coordinates in place of the offsets of rows."""
    if sparse_dim != len(x.shape):
        raise InvalidArgumentError(
            f"sparse_to_sparse_coo: sparse_dim is {sparse_dim} for a tensor in CSR of shape {list(x.shape)}; expected "
            f"{len(x.shape)}, since CSR has no dense dims"
        )
    return SparseCooTensor(coordinates(x).astype(x.cols.dtype), x.values.copy(), x.shape, check=False)


to_coo_grad = kernel("sparse_to_sparse_coo_grad", dtypes=FLOATS)(dense_grad)
csr_to_coo_grad = kernel("sparse_to_sparse_coo_grad", dtypes=FLOATS)(sparse_grad)
