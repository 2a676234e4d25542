"""Kernel of flip: a view."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel


@kernel("flip", place=("cpu", "cuda"), view=True)
def flip(X: Array, *, axis: list[int], xp: ArrayModule) -> Array:
    return xp.flip(X, tuple(axis)) if X.ndim else X  # a dim 0 of a tensor without dims is allowed
