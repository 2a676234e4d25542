"""What kernels that move elements share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array
from oprack.tensor import SparseCooTensor, SparseCsrTensor, SparseTensor

from oprack_sparse.kernels._patterns import csr_of, in_order


def placed(x: SparseTensor, indices: Array, values: Array, shape: Sequence[int]) -> SparseTensor:
    """Elements at new coordinates: in COO in the order given, in CSR sorted."""
    if isinstance(x, SparseCsrTensor):
        order = in_order(indices, shape)
        return csr_of(indices[:, order], values[order], shape)
    assert isinstance(x, SparseCooTensor)
    return SparseCooTensor(indices.astype(x.indices.dtype, copy=False), values, shape, check=False)


def numbers(attribute: Sequence[int], tensor: Array | None, tensors: Sequence[Array] | None) -> list[int]:
    """The numbers of an attribute for which tensors may stand."""
    if tensor is not None:
        return [int(v) for v in np.asarray(tensor).reshape(-1)]
    return [int(np.asarray(t).reshape(-1)[0]) for t in tensors] if tensors else list(attribute)
