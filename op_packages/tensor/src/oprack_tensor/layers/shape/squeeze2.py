"""Layer of squeeze2."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable

from oprack_tensor.layers._ints import ints


def squeeze(input, axes, name=None):
    """input without the dims `axes`, which have size 1; an empty list: without all such dims. Op squeeze2."""
    check_variable(input, "input", "squeeze")
    return LayerHelper("squeeze2", name=name).apply("squeeze2", {"X": input}, {"axes": ints(axes)})
