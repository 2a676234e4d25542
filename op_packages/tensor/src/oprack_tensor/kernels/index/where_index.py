"""Kernel of where_index."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel


@kernel("where_index", place=("cpu", "cuda"))
def where_index(Condition: Array, *, xp: ArrayModule) -> Array:
    return xp.argwhere(Condition).astype("int64")
