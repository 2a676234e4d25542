"""Kernel of is_empty."""

from __future__ import annotations

from oprack.kernel import kernel


@kernel("is_empty", place=("cpu", "cuda"))
def is_empty(X, *, xp):
    return xp.asarray(X.size == 0)
