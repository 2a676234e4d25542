"""Kernel of dequantize."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel


@kernel("dequantize", place=("cpu", "cuda"), dtypes={"int8", "uint8", "bfloat16"})
def dequantize(Input: Array, *, Scale: float, Shift: float) -> Array:
    """float32 numbers."""
    wide = Input.astype(np.float32)
    return wide if Input.dtype.itemsize > 1 else (wide - np.float32(Shift)) * np.float32(1 / Scale)
