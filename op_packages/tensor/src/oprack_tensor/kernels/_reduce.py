"""Sums that undo a broadcast."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule


def sum_over(array: Array, axes: int | tuple[int, ...], xp: ArrayModule) -> Array:
    """Sum over axes in the array's own dtype; 16-bit floats are added up in float32."""
    if array.dtype.itemsize == 2 and array.dtype.kind not in "iu":
        return xp.sum(array.astype(xp.float32), axis=axes).astype(array.dtype)
    return xp.sum(array, axis=axes, dtype=array.dtype)


def sum_to(array: Array, shape: tuple[int, ...], xp: ArrayModule) -> Array:
    """Sum of `array` over the dims that broadcasting `shape` to array's shape added or widened."""
    if array.shape == tuple(shape):
        return array.copy()
    lead = array.ndim - len(shape)
    axes = (*range(lead), *(lead + i for i, n in enumerate(shape) if n == 1 and array.shape[lead + i] != 1))
    return sum_over(array, axes, xp).reshape(shape)
