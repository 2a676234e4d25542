"""Kernel of fill_zeros_like2."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel
from oprack.tensor import numpy_dtype


@kernel("fill_zeros_like2", place=("cpu", "cuda"))
def fill_zeros_like2(X: Any, *, dtype: int, xp: Any) -> Any:
    """Zeros of the dtype."""
    return xp.zeros(X.shape, numpy_dtype(dtype))
