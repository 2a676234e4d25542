"""Kernels of quantization by given scales, and of the way back."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, RequiredArray, kernel
from oprack.types import FLOATS

from oprack_quantization.kernels._quantize import abs_max, along, averaged, copied, greatest, quantize


# dequantize_abs_max ---------------------------------------------------------------------------------------------------
@kernel("dequantize_abs_max", place=("cpu", "cuda"), dtypes={"int8", "int16"})
def dequantize_abs_max(X: Array, Scale: Array, *, max_range: float) -> Array:
    """X Scale / max_range."""
    return X.astype(Scale.dtype) * along(Scale, X.ndim, -1) / Scale.dtype.type(max_range)


# dequantize_linear ----------------------------------------------------------------------------------------------------
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


# quantize_linear ------------------------------------------------------------------------------------------------------
@kernel("quantize_linear", place=("cpu", "cuda"), dtypes=FLOATS)
def quantize_linear(
    X: Array,
    Scale: Array,
    InAccum: RequiredArray = None,
    InState: RequiredArray = None,
    *,
    quant_axis: int,
    bit_length: int,
    round_type: int,
    is_test: bool,
    only_observer: bool,
    moving_rate: float,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    """By Scale, or in training by what X shows."""
    scale, state, accum = Scale.copy(), copied(InState), copied(InAccum)
    if not is_test and quant_axis >= 0:
        scale = abs_max(X, xp, quant_axis)
    elif not is_test:
        scale, state, accum = averaged(X, InAccum, InState, moving_rate, xp)
    if only_observer:
        return X.copy(), state, accum, scale
    return quantize(X, along(scale, X.ndim, quant_axis), bit_length, round_type, xp), state, accum, scale
