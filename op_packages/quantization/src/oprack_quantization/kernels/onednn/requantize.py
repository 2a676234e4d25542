"""Kernel of requantize."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel

from oprack_quantization.kernels.onednn._round import rounded


@kernel("requantize", place=("cpu", "cuda"), dtypes={"int8", "uint8"})
def requantize(
    Input: Array, *, Scale_in: float, Scale_out: float, Shift_in: float, Shift_out: float, xp: ArrayModule
) -> Array:
    """Numbers of another scale."""
    factor = np.float32(Scale_out / Scale_in)
    x = (Input.astype(np.float32) - np.float32(Shift_in)) * factor + np.float32(Shift_out)
    return rounded(x, Input.dtype.type, xp)
