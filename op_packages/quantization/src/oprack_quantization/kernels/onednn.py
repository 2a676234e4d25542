"""Steps into and out of quantised numbers that Paddle's passes for oneDNN put in."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype


# round ----------------------------------------------------------------------------------------------------------------
# Rounding into integers of 8 bits.
def rounded(x: Array, kind: type, xp: ArrayModule) -> Array:
    """The nearest integers, halves to the even one, kept within the type; NaN is 0."""
    limits = xp.iinfo(kind)
    return xp.clip(xp.rint(xp.where(xp.isnan(x), 0, x)), limits.min, limits.max).astype(kind)


# dequantize -----------------------------------------------------------------------------------------------------------
@kernel("dequantize", place=("cpu", "cuda"), dtypes={"int8", "uint8", "bfloat16"})
def dequantize(Input: Array, *, Scale: float, Shift: float) -> Array:
    """float32 numbers."""
    wide = Input.astype(np.float32)
    return wide if Input.dtype.itemsize > 1 else (wide - np.float32(Shift)) * np.float32(1 / Scale)


# quantize -------------------------------------------------------------------------------------------------------------
@kernel("quantize", place=("cpu", "cuda"), dtypes={"float32"})
def quantize(
    Input: Array, *, is_negative_input: bool, Scale: float, Shift: float, bfloat16: bool, xp: ArrayModule
) -> Array:
    """Scaled, rounded and kept within the type."""
    if bfloat16:
        return Input.astype(numpy_dtype("bfloat16"))
    kind = xp.int8 if is_negative_input and Shift == 0 else xp.uint8
    return rounded(Input * Input.dtype.type(Scale) + Input.dtype.type(Shift), kind, xp)


# requantize -----------------------------------------------------------------------------------------------------------
@kernel("requantize", place=("cpu", "cuda"), dtypes={"int8", "uint8"})
def requantize(
    Input: Array, *, Scale_in: float, Scale_out: float, Shift_in: float, Shift_out: float, xp: ArrayModule
) -> Array:
    """Numbers of another scale."""
    factor = np.float32(Scale_out / Scale_in)
    x = (Input.astype(np.float32) - np.float32(Shift_in)) * factor + np.float32(Shift_out)
    return rounded(x, Input.dtype.type, xp)
