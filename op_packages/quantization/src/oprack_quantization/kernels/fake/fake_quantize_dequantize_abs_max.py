"""Kernel of fake_quantize_dequantize_abs_max."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_quantization.kernels._quantize import quantize_dequantize
from oprack_quantization.kernels.fake._family import by_abs_max

_kernel = by_abs_max(quantize_dequantize)
kernel("fake_quantize_dequantize_abs_max", place=("cpu", "cuda"), dtypes=FLOATS)(_kernel)
