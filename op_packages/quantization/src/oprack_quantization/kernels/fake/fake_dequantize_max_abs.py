"""Kernel of fake_dequantize_max_abs."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import FLOATS

from oprack_quantization.kernels._quantize import along


@kernel("fake_dequantize_max_abs", place=("cpu", "cuda"), dtypes=FLOATS)
def fake_dequantize_max_abs(X: Array, Scale: Array, *, max_range: float) -> Array:
    """X Scale / max_range."""
    return X * along(Scale, X.ndim, -1) / X.dtype.type(max_range)
