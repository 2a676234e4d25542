"""Stable orders, and the adjoint of picking."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule

from oprack_tensor.kernels._index import grid


def order_of(array: Array, axis: int, descending: bool, xp: ArrayModule) -> Array:
    """Indices that sort along an axis; equals keep their order; NaN counts as the largest value."""
    if not descending:
        return xp.argsort(array, axis=axis, kind="stable")
    # sorting the reversed array and reading the result backwards keeps equals in order
    backwards = xp.flip(array, axis)
    return array.shape[axis] - 1 - xp.flip(xp.argsort(backwards, axis=axis, kind="stable"), axis)


def put_back(shape: tuple[int, ...], index: Array, values: Array, axis: int, xp: ArrayModule) -> Array:
    """Zeros of `shape` with `values` at the places `index` along an axis, each of which is named once."""
    grad = xp.zeros(shape, values.dtype)
    if not shape:
        return grad + values
    grad[grid(index, axis, xp)] = values
    return grad
