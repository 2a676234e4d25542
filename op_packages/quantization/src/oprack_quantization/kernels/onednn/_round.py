"""Rounding into integers of 8 bits."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule


def rounded(x: Array, kind: type, xp: ArrayModule) -> Array:
    """The nearest integers, halves to the even one, kept within the type; NaN is 0."""
    limits = xp.iinfo(kind)
    return xp.clip(xp.rint(xp.where(xp.isnan(x), 0, x)), limits.min, limits.max).astype(kind)
