"""Kernel of quantize."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype

from oprack_quantization.kernels.onednn._round import rounded


@kernel("quantize", place=("cpu", "cuda"), dtypes={"float32"})
def quantize(
    Input: Array, *, is_negative_input: bool, Scale: float, Shift: float, bfloat16: bool, xp: ArrayModule
) -> Array:
    """Scaled, rounded and kept within the type."""
    if bfloat16:
        return Input.astype(numpy_dtype("bfloat16"))
    kind = xp.int8 if is_negative_input and Shift == 0 else xp.uint8
    return rounded(Input * Input.dtype.type(Scale) + Input.dtype.type(Shift), kind, xp)
