"""Kernels of sparse_multiply and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS, INTEGERS

from oprack_sparse.kernels.elementwise._family import combined, gradients


@kernel("sparse_multiply", dtypes=FLOATS | INTEGERS)
def sparse_multiply(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The product of what either lists."""
    return combined("sparse_multiply", x, y, np.multiply)


@kernel("sparse_multiply_grad", dtypes=FLOATS)
def sparse_multiply_grad(x: SparseTensor, y: SparseTensor, out_grad: SparseTensor) -> tuple[SparseTensor, SparseTensor]:
    """By x and by y."""
    return gradients(x, y, out_grad, lambda g, a, b: g * b, lambda g, a, b: g * a)
