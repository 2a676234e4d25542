"""Layer of slice."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import Variable

from oprack_tensor.layers.index._slice import slice_by


def slice(
    input: Variable,
    axes: Sequence[int],
    starts: Sequence[int | Variable] | Variable,
    ends: Sequence[int | Variable] | Variable,
    name: str | None = None,
) -> Variable:
    """input[..., starts[i]:ends[i], ...] along each dim axes[i]; Variables of one element may be among the places.

    Op slice. Raises InvalidArgumentError.
    """
    return slice_by("slice", input, axes, {"starts": starts, "ends": ends}, name)
