"""Kernels of sparse_cast and of its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SparseTensor, numpy_dtype
from oprack.types import BOOL, FLOATS, HALF_FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import values_at

ALL = FLOATS | HALF_FLOATS | INTEGERS | BOOL


@kernel("sparse_cast", dtypes=ALL)
def sparse_cast(x: SparseTensor, *, index_dtype: int, value_dtype: int) -> SparseTensor:
    """The same numbers in other dtypes."""
    values = x.values.copy() if value_dtype < 0 else x.values.astype(numpy_dtype(value_dtype))
    if index_dtype < 0:
        return x.with_values(values)
    return x.rebuilt([a.astype(numpy_dtype(index_dtype)) for a in x.pattern], values)


@kernel("sparse_cast_grad", dtypes=ALL)
def sparse_cast_grad(x: SparseTensor, out_grad: SparseTensor) -> SparseTensor:
    """The gradient in the dtype of x."""
    return x.with_values(values_at(out_grad, x).astype(x.values.dtype))
