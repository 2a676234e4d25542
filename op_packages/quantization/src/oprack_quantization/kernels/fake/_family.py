"""Kernels that members of fake quantization share."""

from __future__ import annotations

from collections.abc import Callable

from oprack.kernel import Array, ArrayModule

from oprack_quantization.kernels._quantize import abs_max, along, averaged, copied

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
        InAccum: Array | None = None,
        InState: Array | None = None,
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
