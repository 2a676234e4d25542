"""Where diagonals are."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule

from oprack_tensor.ops.diagonal._family import diagonal_size


def on_diagonal(array: Array, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> tuple[Array, Array]:
    """(view with both dims last, index of the diagonal's elements in it)."""
    matrices = xp.moveaxis(array, (axis1, axis2), (-2, -1))
    i = xp.arange(diagonal_size(*matrices.shape[-2:], offset))
    return matrices, (..., i - min(offset, 0), i + max(offset, 0))


def with_diagonal(shape: tuple[int, ...], values: Array, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> Array:
    """Zeros of a shape, `values` on the diagonal."""
    out = xp.zeros(shape, values.dtype)
    matrices, where = on_diagonal(out, offset, axis1, axis2, xp)
    matrices[where] = values
    return out
