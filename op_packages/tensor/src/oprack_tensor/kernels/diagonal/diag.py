"""Kernel of diag."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel


@kernel("diag", place=("cpu", "cuda"))
def diag(Diagonal: Array, *, xp: ArrayModule) -> Array:
    """The matrix with this diagonal."""
    return xp.diag(Diagonal)
