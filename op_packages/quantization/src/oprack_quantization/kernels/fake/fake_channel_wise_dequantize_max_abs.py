"""Kernel of fake_channel_wise_dequantize_max_abs."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import FLOATS

from oprack_quantization.kernels._quantize import along, greatest


@kernel("fake_channel_wise_dequantize_max_abs", place=("cpu", "cuda"), dtypes=FLOATS)
def fake_channel_wise_dequantize_max_abs(
    X: Array, Scales: list[Array], *, quant_bits: list[int], quant_axis: int, x_num_col_dims: int
) -> Array:
    """X times one scale or two, by the greatest integers."""
    axis, bound = (quant_axis, 1) if len(Scales) == 1 else (x_num_col_dims, greatest(quant_bits[1]))
    out = X * along(Scales[0], X.ndim, axis) / X.dtype.type(greatest(quant_bits[0]) * bound)
    return out if len(Scales) == 1 else out * along(Scales[1], X.ndim, -1)
