"""Kernel of sparse_full_like."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import SparseTensor, numpy_dtype
from oprack.types import BOOL, FLOATS, INTEGERS


@kernel("sparse_full_like", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_full_like(x: SparseTensor, ValueTensor: Array | None = None, *, value: float, dtype: int) -> SparseTensor:
    """The number for each listed element."""
    number = value if ValueTensor is None else ValueTensor.reshape(-1)[0]
    return x.with_values(np.full(x.values.shape, number, x.values.dtype if dtype < 0 else numpy_dtype(dtype)))
