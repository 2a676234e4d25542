"""Kernel of dgc_clip_by_norm."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.norm._clip import norm_clipped


@kernel("dgc_clip_by_norm", place=BOTH, dtypes=REAL_FLOATS)
def dgc_clip_by_norm(
    current_step: Array, X: Array, *, rampup_begin_step: float, max_norm: float, xp: ArrayModule
) -> Array:
    """X, clipped once the ramp has begun."""
    if int(rampup_begin_step) < 0 or int(current_step.reshape(-1)[0]) < int(rampup_begin_step):
        return X.copy()
    return norm_clipped(X, max_norm, xp)
