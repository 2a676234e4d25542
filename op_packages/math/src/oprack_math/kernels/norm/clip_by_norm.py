"""Kernels of clip_by_norm."""

from __future__ import annotations

from oprack.device import merged_rows
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows

from oprack_math.kernels._sets import BOTH, REAL_FLOATS


def _norm_clipped(x: Array, max_norm: float, xp: ArrayModule) -> Array:
    norm = xp.sqrt(xp.sum(xp.square(x), dtype=x.dtype if x.dtype.itemsize > 2 else xp.float32)).astype(x.dtype)
    limit = x.dtype.type(max_norm)
    return x * xp.where(norm > limit, limit / norm, x.dtype.type(1))


@kernel("clip_by_norm", place=BOTH, dtypes=REAL_FLOATS)
def clip_by_norm(X: Array, *, max_norm: float, xp: ArrayModule) -> Array:
    """X scaled to the norm max_norm if its own is greater."""
    return _norm_clipped(X, max_norm, xp)


@kernel("clip_by_norm", place=BOTH, dtypes=REAL_FLOATS, deterministic={"cpu"})
def clip_by_norm_rows(X: SelectedRows, *, max_norm: float, xp: ArrayModule) -> SelectedRows:
    """Rows that are listed twice are added first."""
    merged = merged_rows(X, xp)
    merged.value = _norm_clipped(merged.value, max_norm, xp)
    return merged
