"""The layer of clip."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._numbers import NUMBERS


def clip(x: Variable, min: float, max: Variable | float, name: str | None = None) -> Variable:
    """x, with values outside `min` to `max` replaced by these, each a number or a Variable of one element. Op clip."""
    check_variable(x, "x", "clip", NUMBERS)
    inputs, attrs = {"X": x}, {}
    for slot, value in (("Min", min), ("Max", max)):
        if isinstance(value, int | float):
            attrs[slot.lower()] = float(value)
        else:
            # the attribute is required, and the tensor overrides it
            inputs[slot], attrs[slot.lower()] = check_variable(value, slot.lower(), "clip"), 0.0
    return LayerHelper("clip", name=name).apply("clip", inputs, attrs)
