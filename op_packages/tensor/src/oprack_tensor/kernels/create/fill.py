"""Kernel of fill."""

from __future__ import annotations

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype


@kernel("fill", place=("cpu", "cuda"))
def fill(*, value: list[float], shape: list[int], dtype: int, xp: ArrayModule) -> Array:
    """The numbers as an array."""
    return constant(np.array(value).astype(numpy_dtype(dtype)), xp).reshape(shape).copy()
