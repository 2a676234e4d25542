"""Kernel of sparse_indices."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor
from oprack.types import BOOL, FLOATS, INTEGERS


@kernel("sparse_indices", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_indices(x: SparseCooTensor) -> Array:
    """A copy of the indices."""
    return x.indices.astype(np.int64)
