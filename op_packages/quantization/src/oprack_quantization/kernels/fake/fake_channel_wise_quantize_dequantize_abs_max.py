"""Kernel of fake_channel_wise_quantize_dequantize_abs_max."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_quantization.kernels._quantize import quantize_dequantize
from oprack_quantization.kernels.fake._family import by_channel

_kernel = by_channel(quantize_dequantize)
kernel("fake_channel_wise_quantize_dequantize_abs_max", place=("cpu", "cuda"), dtypes=FLOATS)(_kernel)
