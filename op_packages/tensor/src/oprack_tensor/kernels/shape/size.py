"""Kernel of size."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly


@kernel("size", place=("cpu", "cuda"))
def size(Input: ShapeOnly, *, xp: ArrayModule) -> Array:
    return xp.full((), Input.size, dtype="int64")
