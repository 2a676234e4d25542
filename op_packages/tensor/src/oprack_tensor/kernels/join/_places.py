"""Views of the places along a dim."""

from __future__ import annotations

from oprack.kernel import Array


def places(array: Array, axis: int) -> list[Array]:
    """Views of the places along an axis, without that dim."""
    axis += array.ndim if axis < 0 else 0
    lead = (slice(None),) * axis
    return [array[(*lead, i, ...)] for i in range(array.shape[axis])]
