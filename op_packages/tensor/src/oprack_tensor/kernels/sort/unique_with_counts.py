"""Kernel of unique_with_counts."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import numpy_dtype

from oprack_tensor.kernels.sort._unique import by_appearance


@kernel("unique_with_counts")
def unique_with_counts(X: Array, *, dtype: int) -> tuple[Array, Array, Array]:
    """Values as they appear first, where each went, and how often it is there."""
    out, index, count = by_appearance(X)
    kind = numpy_dtype(dtype)
    return out, index.astype(kind), count.astype(kind)
