"""Where diagonals are."""

from __future__ import annotations

from typing import Any

from oprack_tensor.ops.diagonal._family import diagonal_size


def on_diagonal(array: Any, offset: int, axis1: int, axis2: int, xp: Any) -> tuple[Any, Any]:
    """(view with both dims last, index of the diagonal's elements in it)."""
    matrices = xp.moveaxis(array, (axis1, axis2), (-2, -1))
    i = xp.arange(diagonal_size(*matrices.shape[-2:], offset))
    return matrices, (..., i - min(offset, 0), i + max(offset, 0))


def with_diagonal(shape: tuple[int, ...], values: Any, offset: int, axis1: int, axis2: int, xp: Any) -> Any:
    """Zeros of a shape, `values` on the diagonal."""
    out = xp.zeros(shape, values.dtype)
    matrices, where = on_diagonal(out, offset, axis1, axis2, xp)
    matrices[where] = values
    return out
