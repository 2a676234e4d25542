"""Kernels of sparse_coalesce and of its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SparseCooTensor
from oprack.types import FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import coalesced, values_at


@kernel("sparse_coalesce", dtypes=FLOATS | INTEGERS)
def sparse_coalesce(x: SparseCooTensor) -> SparseCooTensor:
    """Sorted, with the sums of what was listed several times."""
    return coalesced(x)


@kernel("sparse_coalesce_grad", dtypes=FLOATS)
def sparse_coalesce_grad(x: SparseCooTensor, out_grad: SparseCooTensor) -> SparseCooTensor:
    """The gradient of each sum for all its terms."""
    return x.with_values(values_at(out_grad, x).copy())
