"""Layer of strided_slice."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import Variable

from oprack_tensor.layers.index._slice import slice_by


def strided_slice(
    input: Variable,
    axes: Sequence[int],
    starts: Sequence[int | Variable] | Variable,
    ends: Sequence[int | Variable] | Variable,
    strides: Sequence[int | Variable] | Variable,
    name: str | None = None,
) -> Variable:
    """As slice, with a step along each dim, which may be negative. Op strided_slice."""
    return slice_by("strided_slice", input, axes, {"starts": starts, "ends": ends, "strides": strides}, name)
