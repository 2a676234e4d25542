"""Kernel of dequantize_abs_max."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_quantization.kernels._quantize import along


@kernel("dequantize_abs_max", place=("cpu", "cuda"), dtypes={"int8", "int16"})
def dequantize_abs_max(X: Array, Scale: Array, *, max_range: float) -> Array:
    """X Scale / max_range."""
    return X.astype(Scale.dtype) * along(Scale, X.ndim, -1) / Scale.dtype.type(max_range)
