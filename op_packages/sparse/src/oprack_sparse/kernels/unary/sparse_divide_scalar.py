"""Kernel of sparse_divide_scalar."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS, INTEGERS


@kernel("sparse_divide_scalar", dtypes=FLOATS | INTEGERS)
def sparse_divide_scalar(x: SparseTensor, *, scalar: float) -> SparseTensor:
    """The values divided by a number; those of integers are cut towards zero."""
    if x.values.dtype.kind == "f":
        return x.with_values(x.values / x.values.dtype.type(scalar))
    return x.with_values(np.trunc(x.values / np.float64(scalar)).astype(x.values.dtype))
