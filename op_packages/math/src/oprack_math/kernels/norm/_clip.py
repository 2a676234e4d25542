"""Clipping by the norm, which clip_by_norm and dgc_clip_by_norm share."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule


def norm_clipped(x: Array, max_norm: float, xp: ArrayModule) -> Array:
    """x scaled to the norm max_norm if its own is greater."""
    norm = xp.sqrt(xp.sum(xp.square(x), dtype=x.dtype if x.dtype.itemsize > 2 else xp.float32)).astype(x.dtype)
    limit = x.dtype.type(max_norm)
    return x * xp.where(norm > limit, limit / norm, x.dtype.type(1))
