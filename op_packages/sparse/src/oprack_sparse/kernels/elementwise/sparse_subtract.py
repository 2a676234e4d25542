"""Kernels of sparse_subtract and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS, INTEGERS

from oprack_sparse.kernels.elementwise._family import combined, gradients


@kernel("sparse_subtract", dtypes=FLOATS | INTEGERS)
def sparse_subtract(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The difference of what either lists."""
    return combined("sparse_subtract", x, y, np.subtract)


@kernel("sparse_subtract_grad", dtypes=FLOATS)
def sparse_subtract_grad(x: SparseTensor, y: SparseTensor, out_grad: SparseTensor) -> tuple[SparseTensor, SparseTensor]:
    """By x and by y."""
    return gradients(x, y, out_grad, lambda g, a, b: g.copy(), lambda g, a, b: -g)
