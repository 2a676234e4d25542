"""Kernels of fake quantization: floats that hold what integers would."""

from __future__ import annotations

from collections.abc import Callable

from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.types import FLOATS

from oprack_quantization.kernels._quantize import (
    abs_max,
    along,
    averaged,
    copied,
    greatest,
    quantize,
    quantize_dequantize,
)

# shared ---------------------------------------------------------------------------------------------------------------
# Kernels that members of fake quantization share.
Rounded = Callable[[Array, Array, int, int, ArrayModule], Array]


def by_abs_max(rounded: Rounded) -> Callable[..., tuple[Array, Array]]:
    """A kernel by the greatest absolute value; rounded: `quantize`, or there and back again."""

    def kernel(X: Array, *, bit_length: int, round_type: int, xp: ArrayModule) -> tuple[Array, Array]:
        scale = abs_max(X, xp)
        return rounded(X, along(scale, X.ndim, -1), bit_length, round_type, xp), scale

    return kernel


def by_channel(rounded: Rounded) -> Callable[..., tuple[Array, Array]]:
    """A kernel by the greatest absolute value of each channel."""

    def kernel(X: Array, *, bit_length: int, round_type: int, quant_axis: int, xp: ArrayModule) -> tuple[Array, Array]:
        scale = abs_max(X, xp, quant_axis)
        return rounded(X, along(scale, X.ndim, quant_axis), bit_length, round_type, xp), scale

    return kernel


def by_moving_average(rounded: Rounded) -> Callable[..., tuple[Array | None, ...]]:
    """A kernel by a moving average."""

    def kernel(
        X: Array,
        InScale: Array,
        InAccum: RequiredArray = None,
        InState: RequiredArray = None,
        *,
        moving_rate: float,
        bit_length: int,
        is_test: bool,
        round_type: int,
        xp: ArrayModule,
    ) -> tuple[Array | None, ...]:
        if is_test:
            scale, state, accum = InScale.copy(), copied(InState), copied(InAccum)
        else:
            scale, state, accum = averaged(X, InAccum, InState, moving_rate, xp)
        return rounded(X, along(scale, X.ndim, -1), bit_length, round_type, xp), scale, state, accum

    return kernel


# fake_channel_wise_dequantize_max_abs ---------------------------------------------------------------------------------
@kernel("fake_channel_wise_dequantize_max_abs", place=("cpu", "cuda"), dtypes=FLOATS)
def fake_channel_wise_dequantize_max_abs(
    X: Array, Scales: list[Array], *, quant_bits: list[int], quant_axis: int, x_num_col_dims: int
) -> Array:
    """X times one scale or two, by the greatest integers."""
    axis, bound = (quant_axis, 1) if len(Scales) == 1 else (x_num_col_dims, greatest(quant_bits[1]))
    out = X * along(Scales[0], X.ndim, axis) / X.dtype.type(greatest(quant_bits[0]) * bound)
    return out if len(Scales) == 1 else out * along(Scales[1], X.ndim, -1)


# fake_channel_wise_quantize_abs_max -----------------------------------------------------------------------------------
_quantized_by_channel = by_channel(quantize)

kernel("fake_channel_wise_quantize_abs_max", place=("cpu", "cuda"), dtypes=FLOATS)(_quantized_by_channel)


# fake_channel_wise_quantize_dequantize_abs_max ------------------------------------------------------------------------
_rounded_by_channel = by_channel(quantize_dequantize)

kernel("fake_channel_wise_quantize_dequantize_abs_max", place=("cpu", "cuda"), dtypes=FLOATS)(_rounded_by_channel)


# fake_dequantize_max_abs ----------------------------------------------------------------------------------------------
@kernel("fake_dequantize_max_abs", place=("cpu", "cuda"), dtypes=FLOATS)
def fake_dequantize_max_abs(X: Array, Scale: Array, *, max_range: float) -> Array:
    """X Scale / max_range."""
    return X * along(Scale, X.ndim, -1) / X.dtype.type(max_range)


# fake_quantize_abs_max ------------------------------------------------------------------------------------------------
_quantized_by_abs_max = by_abs_max(quantize)

kernel("fake_quantize_abs_max", place=("cpu", "cuda"), dtypes=FLOATS)(_quantized_by_abs_max)


# fake_quantize_dequantize_abs_max -------------------------------------------------------------------------------------
_rounded_by_abs_max = by_abs_max(quantize_dequantize)

kernel("fake_quantize_dequantize_abs_max", place=("cpu", "cuda"), dtypes=FLOATS)(_rounded_by_abs_max)


# fake_quantize_dequantize_moving_average_abs_max ----------------------------------------------------------------------
_rounded_by_moving_average = by_moving_average(quantize_dequantize)

kernel("fake_quantize_dequantize_moving_average_abs_max", place=("cpu", "cuda"), dtypes=FLOATS)(
    _rounded_by_moving_average
)


# fake_quantize_moving_average_abs_max ---------------------------------------------------------------------------------
_quantized_by_moving_average = by_moving_average(quantize)

kernel("fake_quantize_moving_average_abs_max", place=("cpu", "cuda"), dtypes=FLOATS)(_quantized_by_moving_average)


# fake_quantize_range_abs_max ------------------------------------------------------------------------------------------
@kernel("fake_quantize_range_abs_max", place=("cpu", "cuda"), dtypes=FLOATS)
def fake_quantize_range_abs_max(
    X: Array,
    InScale: Array,
    Iter: Array | None = None,
    *,
    window_size: int,
    bit_length: int,
    is_test: bool,
    round_type: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    """By the greatest absolute value so far."""
    now = abs_max(X, xp)
    scale = InScale.copy() if is_test else xp.maximum(InScale, now)
    scales = None
    if ctx.wants("OutScales"):
        place = 0 if Iter is None else Iter.reshape(1) % window_size
        scales = xp.where(xp.arange(window_size) == place, now, X.dtype.type(0))
    return quantize(X, along(scale, X.ndim, -1), bit_length, round_type, xp), scale, scales


# moving_average_abs_max_scale -----------------------------------------------------------------------------------------
@kernel("moving_average_abs_max_scale", place=("cpu", "cuda"), dtypes=FLOATS)
def moving_average_abs_max_scale(
    X: Array,
    InAccum: RequiredArray = None,
    InState: RequiredArray = None,
    *,
    moving_rate: float,
    is_test: bool,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    """X and the average."""
    if not is_test:
        return X.copy(), *averaged(X, InAccum, InState, moving_rate, xp)
    known = InAccum is not None and InState is not None
    return X.copy(), InAccum / InState if known else xp.zeros(1, X.dtype), copied(InState), copied(InAccum)


# stright_throuth_estimator_grad ---------------------------------------------------------------------------------------
@kernel("stright_throuth_estimator_grad", place=("cpu", "cuda"), dtypes=FLOATS, view=True)
def stright_throuth_estimator_grad(Out_grad: Array) -> Array:
    """The gradient as it is."""
    return Out_grad
