"""Kernel of fake_quantize_dequantize_moving_average_abs_max."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_quantization.kernels._quantize import quantize_dequantize
from oprack_quantization.kernels.fake._family import by_moving_average

_kernel = by_moving_average(quantize_dequantize)
kernel("fake_quantize_dequantize_moving_average_abs_max", place=("cpu", "cuda"), dtypes=FLOATS)(_kernel)
