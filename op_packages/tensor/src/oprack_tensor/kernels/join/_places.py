"""Views of the places along a dim."""

from __future__ import annotations


def places(array, axis):
    """Views of the places along an axis, without that dim."""
    axis += array.ndim if axis < 0 else 0
    lead = (slice(None),) * axis
    return [array[(*lead, i, ...)] for i in range(array.shape[axis])]
