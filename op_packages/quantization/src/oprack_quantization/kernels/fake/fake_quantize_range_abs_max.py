"""Kernel of fake_quantize_range_abs_max."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_quantization.kernels._quantize import abs_max, along, quantize


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
