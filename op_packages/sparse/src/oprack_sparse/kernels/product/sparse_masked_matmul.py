"""Kernels of sparse_masked_matmul and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels.product._matrices import inner_at, times_dense, transposed_times_dense


@kernel("sparse_masked_matmul", dtypes=FLOATS)
def sparse_masked_matmul(x: Array, y: Array, mask: SparseTensor) -> SparseTensor:
    """The products that the mask lists."""
    return mask.with_values(inner_at(mask, x, np.swapaxes(y, -1, -2)))


@kernel("sparse_masked_matmul_grad", dtypes=FLOATS)
def sparse_masked_matmul_grad(x: Array, y: Array, out_grad: SparseTensor) -> tuple[Array, Array]:
    """By x and by y."""
    by_x = times_dense(out_grad, np.ascontiguousarray(np.swapaxes(y, -1, -2)))
    return by_x, np.ascontiguousarray(np.swapaxes(transposed_times_dense(out_grad, x), -1, -2))
