"""Kernels of clip_by_norm."""

from __future__ import annotations

from oprack.device import merged_rows
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.norm._clip import norm_clipped


@kernel("clip_by_norm", place=BOTH, dtypes=REAL_FLOATS)
def clip_by_norm(X: Array, *, max_norm: float, xp: ArrayModule) -> Array:
    """X scaled to the norm max_norm if its own is greater."""
    return norm_clipped(X, max_norm, xp)


@kernel("clip_by_norm", place=BOTH, dtypes=REAL_FLOATS, deterministic={"cpu"})
def clip_by_norm_rows(X: SelectedRows, *, max_norm: float, xp: ArrayModule) -> SelectedRows:
    """Rows that are listed twice are added first."""
    merged = merged_rows(X, xp)
    merged.value = norm_clipped(merged.value, max_norm, xp)
    return merged
