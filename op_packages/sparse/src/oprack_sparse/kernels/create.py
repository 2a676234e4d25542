"""Kernels of ops that make sparse tensors, and take them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor, SparseCsrTensor, SparseTensor
from oprack.types import BOOL, FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import coalesced, coordinates, csr_of, lookup, values_at


# convert --------------------------------------------------------------------------------------------------------------
# Kernels that changes of the layout share.
def dense_grad(x: Array, out_grad: SparseTensor) -> Array:
    """The gradient of a dense tensor."""
    return out_grad.to_dense()


def sparse_grad(x: SparseTensor, out_grad: SparseTensor) -> SparseTensor:
    """The gradient over the pattern of a sparse tensor."""
    return x.with_values(values_at(out_grad, x).copy())


# sparse_coalesce ------------------------------------------------------------------------------------------------------
@kernel("sparse_coalesce", dtypes=FLOATS | INTEGERS)
def sparse_coalesce(x: SparseCooTensor) -> SparseCooTensor:
    """Sorted, with the sums of what was listed several times."""
    return coalesced(x)


@kernel("sparse_coalesce_grad", dtypes=FLOATS)
def sparse_coalesce_grad(x: SparseCooTensor, out_grad: SparseCooTensor) -> SparseCooTensor:
    """The gradient of each sum for all its terms."""
    return x.with_values(values_at(out_grad, x).copy())


# sparse_indices -------------------------------------------------------------------------------------------------------
@kernel("sparse_indices", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_indices(x: SparseCooTensor) -> Array:
    """A copy of the indices."""
    return x.indices.astype(np.int64)


# sparse_sparse_coo_tensor ---------------------------------------------------------------------------------------------
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


# sparse_to_dense ------------------------------------------------------------------------------------------------------
@kernel("sparse_to_dense", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_to_dense(x: SparseTensor) -> Array:
    """All elements."""
    return x.to_dense()


@kernel("sparse_to_dense_grad", dtypes=FLOATS)
def sparse_to_dense_grad(x: SparseTensor, out_grad: Array) -> SparseTensor:
    """The gradient of the listed elements."""
    return x.with_values(out_grad[tuple(coordinates(x))])


# sparse_to_sparse_coo -------------------------------------------------------------------------------------------------
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


# sparse_to_sparse_csr -------------------------------------------------------------------------------------------------
DENSE_DTYPES = FLOATS | INTEGERS | BOOL


@kernel("sparse_to_sparse_csr", dtypes=DENSE_DTYPES)
def dense_to_csr(x: Array) -> SparseCsrTensor:
    """The elements that are not zero."""
    indices = np.stack(np.nonzero(x)).astype(np.int64)
    return csr_of(indices, x[tuple(indices)], x.shape)


@kernel("sparse_to_sparse_csr", dtypes=DENSE_DTYPES)
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


# sparse_values --------------------------------------------------------------------------------------------------------
@kernel("sparse_values", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_values(x: SparseTensor) -> Array:
    """A copy of the values."""
    return x.values.copy()


@kernel("sparse_values_grad", dtypes=FLOATS)
def sparse_values_grad(x: SparseTensor, out_grad: Array) -> SparseTensor:
    """The gradient over x's pattern."""
    return x.with_values(out_grad.copy())
