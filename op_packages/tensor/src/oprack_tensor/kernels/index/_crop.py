"""Parts of tensors, and what undoes taking them."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, ArrayModule

from oprack_tensor.ops.index._crop import crop_sizes


def part(x: Array, offsets: Sequence[int], shape: Sequence[int]) -> Array:
    """The part of x at the offsets, in memory of its own."""
    at = list(offsets) or [0] * x.ndim
    sizes = crop_sizes(x.shape, shape, at)
    return x[tuple(slice(o, o + n) for o, n in zip(at, sizes, strict=True))].copy()


def placed(shape: Sequence[int], values: Array, offsets: Sequence[int], xp: ArrayModule) -> Array:
    """Zeros of a shape with `values` at the offsets."""
    out = xp.zeros(shape, values.dtype)
    at = list(offsets) or [0] * values.ndim
    out[tuple(slice(o, o + n) for o, n in zip(at, values.shape, strict=True))] = values
    return out
