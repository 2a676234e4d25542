"""Kernel of reverse: a view."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel


@kernel("reverse", place=("cpu", "cuda"), view=True)
def reverse(X: Array, *, axis: list[int], xp: ArrayModule) -> Array:
    """X from the other end."""
    return xp.flip(X, tuple(axis))
