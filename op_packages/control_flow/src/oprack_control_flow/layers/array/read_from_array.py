"""Layer of read_from_array."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable

from oprack_control_flow.layers.array._arguments import array_variable, place_variable


def array_read(array: Variable, i: Variable, name: str | None = None) -> Variable:
    """The tensor at place i, an integer Variable of one element. Op read_from_array. Raises InvalidArgumentError."""
    inputs = {"X": array_variable(array, "array_read"), "I": place_variable(i, "array_read")}
    return LayerHelper("array_read", name=name).apply("read_from_array", inputs)
