"""Kernel of triu_indices."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype


@kernel("triu_indices", place=("cpu", "cuda"), dtypes=("int32", "int64"))
def triu_indices(*, row: int, col: int, offset: int, dtype: int, xp: ArrayModule) -> Array:
    """Places on a diagonal and above it."""
    return xp.stack(xp.nonzero(~xp.tri(row, col, offset - 1, bool))).astype(numpy_dtype(dtype))
