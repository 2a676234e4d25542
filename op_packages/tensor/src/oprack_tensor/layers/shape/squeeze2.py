"""Layer of squeeze2."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_tensor.layers._ints import ints


def squeeze(input: Variable, axes: int | Sequence[int], name: str | None = None) -> Variable:
    """input without the dims `axes`, which have size 1; an empty list: without all such dims. Op squeeze2."""
    check_variable(input, "input", "squeeze")
    return LayerHelper("squeeze2", name=name).apply("squeeze2", {"X": input}, {"axes": ints(axes)})
