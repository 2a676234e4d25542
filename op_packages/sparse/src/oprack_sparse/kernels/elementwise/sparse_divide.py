"""Kernels of sparse_divide and of its gradient."""

from __future__ import annotations

import math

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import like, lookup, sparse_dims
from oprack_sparse.kernels.elementwise._family import gradients, require_alike

MOST = 1 << 28


@kernel("sparse_divide", dtypes=FLOATS | INTEGERS)
def sparse_divide(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The quotients of all elements, since 0/0 is not zero."""
    require_alike("sparse_divide", x, y)
    dims = sparse_dims(x)
    if math.prod(dims) > MOST:
        raise InvalidArgumentError(
            f"sparse_divide: x is {x!r}, and the result lists all {math.prod(dims)} quotients, since 0/0 is not zero; "
            "expected a smaller tensor; divide the values of two tensors of one pattern instead"
        )
    indices = np.indices(dims, np.int64).reshape(len(dims), -1)
    return like(x, indices, _quotient(lookup(x, indices), lookup(y, indices)), x.shape)


def _quotient(a: Array, b: Array) -> Array:
    return np.divide(a, b) if a.dtype.kind == "f" else np.trunc(a / b).astype(a.dtype)


@kernel("sparse_divide_grad", dtypes=FLOATS)
def sparse_divide_grad(x: SparseTensor, y: SparseTensor, out_grad: SparseTensor) -> tuple[SparseTensor, SparseTensor]:
    """By x and by y."""
    return gradients(x, y, out_grad, lambda g, a, b: g / b, lambda g, a, b: -g * a / (b * b))
