"""Kernels of sparse_values and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor
from oprack.types import BOOL, FLOATS, INTEGERS


@kernel("sparse_values", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_values(x: SparseTensor) -> Array:
    """A copy of the values."""
    return x.values.copy()


@kernel("sparse_values_grad", dtypes=FLOATS)
def sparse_values_grad(x: SparseTensor, out_grad: Array) -> SparseTensor:
    """The gradient over x's pattern."""
    return x.with_values(out_grad.copy())
