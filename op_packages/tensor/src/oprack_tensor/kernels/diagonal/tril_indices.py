"""Kernel of tril_indices."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype


@kernel("tril_indices", place=("cpu", "cuda"), dtypes=("int32", "int64"))
def tril_indices(*, rows: int, cols: int, offset: int, dtype: int, xp: ArrayModule) -> Array:
    """Places on a diagonal and below it."""
    return xp.stack(xp.nonzero(xp.tri(rows, cols, offset, bool))).astype(numpy_dtype(dtype))
