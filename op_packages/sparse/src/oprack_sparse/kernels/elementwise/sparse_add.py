"""Kernels of sparse_add and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor, SparseTensor
from oprack.types import FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import values_at
from oprack_sparse.kernels.elementwise._family import combined, gradients


@kernel("sparse_add", dtypes=FLOATS | INTEGERS)
def sparse_add(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The sum of what either lists."""
    return combined("sparse_add", x, y, np.add)


@kernel("sparse_add", dtypes=FLOATS | INTEGERS)
def sparse_add_to_values(x: SparseCooTensor, y: Array) -> SparseCooTensor:
    """A dense tensor added to each value."""
    return x.with_values(x.values + y)


@kernel("sparse_add_grad", dtypes=FLOATS)
def sparse_add_grad(x: SparseTensor, y: SparseTensor, out_grad: SparseTensor) -> tuple[SparseTensor, SparseTensor]:
    """By x and by y."""
    return gradients(x, y, out_grad, lambda g, a, b: g.copy(), lambda g, a, b: g.copy())


@kernel("sparse_add_grad", dtypes=FLOATS)
def sparse_add_to_values_grad(x: SparseCooTensor, y: Array, out_grad: SparseCooTensor) -> tuple[SparseCooTensor, Array]:
    """By x and by the dense y."""
    gradient = values_at(out_grad, x)
    return x.with_values(gradient.copy()), gradient.reshape(-1, y.shape[0]).sum(axis=0, dtype=y.dtype)
