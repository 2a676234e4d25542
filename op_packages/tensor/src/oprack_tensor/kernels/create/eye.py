"""Kernel of eye."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype


@kernel("eye", place=("cpu", "cuda"))
def eye(*, num_rows: int, num_columns: int, dtype: int, xp: ArrayModule) -> Array:
    return xp.eye(num_rows, num_rows if num_columns == -1 else num_columns, dtype=numpy_dtype(dtype))
