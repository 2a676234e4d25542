"""Kernel of tril_indices."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel
from oprack.tensor import numpy_dtype


@kernel("tril_indices", place=("cpu", "cuda"), dtypes=("int32", "int64"))
def tril_indices(*, rows: int, cols: int, offset: int, dtype: int, xp: Any) -> Any:
    """Places on a diagonal and below it."""
    return xp.stack(xp.nonzero(xp.tri(rows, cols, offset, bool))).astype(numpy_dtype(dtype))
