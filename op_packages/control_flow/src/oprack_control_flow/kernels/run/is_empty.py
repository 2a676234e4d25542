"""Kernel of is_empty."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel


@kernel("is_empty", place=("cpu", "cuda"))
def is_empty(X: Array, *, xp: ArrayModule) -> Array:
    return xp.asarray(X.size == 0)
