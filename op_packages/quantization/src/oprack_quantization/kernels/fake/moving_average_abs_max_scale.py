"""Kernel of moving_average_abs_max_scale."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_quantization.kernels._quantize import averaged, copied


@kernel("moving_average_abs_max_scale", place=("cpu", "cuda"), dtypes=FLOATS)
def moving_average_abs_max_scale(
    X: Array,
    InAccum: Array | None = None,
    InState: Array | None = None,
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
