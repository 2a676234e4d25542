"""Kernel of where_index."""

from __future__ import annotations

from oprack.kernel import kernel


@kernel("where_index", place=("cpu", "cuda"))
def where_index(Condition, *, xp):
    return xp.argwhere(Condition).astype("int64")
