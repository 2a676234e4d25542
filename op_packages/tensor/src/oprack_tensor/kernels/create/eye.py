"""Kernel of eye."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import numpy_dtype


@kernel("eye", place=("cpu", "cuda"))
def eye(*, num_rows, num_columns, dtype, xp):
    return xp.eye(num_rows, num_rows if num_columns == -1 else num_columns, dtype=numpy_dtype(dtype))
