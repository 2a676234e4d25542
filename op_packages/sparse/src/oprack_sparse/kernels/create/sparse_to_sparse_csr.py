"""Kernels of sparse_to_sparse_csr and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor, SparseCsrTensor
from oprack.types import BOOL, FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import coalesced, csr_of
from oprack_sparse.kernels.create._convert import dense_grad, sparse_grad

ALL = FLOATS | INTEGERS | BOOL


@kernel("sparse_to_sparse_csr", dtypes=ALL)
def dense_to_csr(x: Array) -> SparseCsrTensor:
    """The elements that are not zero."""
    indices = np.stack(np.nonzero(x)).astype(np.int64)
    return csr_of(indices, x[tuple(indices)], x.shape)


@kernel("sparse_to_sparse_csr", dtypes=ALL)
def coo_to_csr(x: SparseCooTensor) -> SparseCsrTensor:
    """The listed elements, sorted by rows."""
    if x.sparse_dim != len(x.shape):
        raise InvalidArgumentError(
            f"sparse_to_sparse_csr: x has shape {list(x.shape)} with {x.sparse_dim} sparse dims; expected no dense "
            "dims, which CSR has not"
        )
    once = coalesced(x)
    return csr_of(once.indices, once.values, x.shape)


to_csr_grad = kernel("sparse_to_sparse_csr_grad", dtypes=FLOATS)(dense_grad)
coo_to_csr_grad = kernel("sparse_to_sparse_csr_grad", dtypes=FLOATS)(sparse_grad)
