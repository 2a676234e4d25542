"""Kernel of dequantize_linear."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import FLOATS

from oprack_quantization.kernels._quantize import along, copied, greatest


@kernel("dequantize_linear", place=("cpu", "cuda"), dtypes=FLOATS | {"int8"})
def dequantize_linear(
    X: Array,
    Scale: Array,
    InAccum: Array | None = None,
    InState: Array | None = None,
    *,
    quant_axis: int,
    bit_length: int,
    only_observer: bool,
) -> tuple[Array | None, ...]:
    """X Scale / B."""
    numbers = X.astype(Scale.dtype)
    if not only_observer:
        numbers = numbers * along(Scale, X.ndim, quant_axis) / Scale.dtype.type(greatest(bit_length))
    return numbers, copied(InState), copied(InAccum), Scale.copy()
