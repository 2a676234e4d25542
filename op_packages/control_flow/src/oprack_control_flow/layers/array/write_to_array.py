"""Layer of write_to_array."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_control_flow.layers.array._arguments import array_variable, place_variable
from oprack_control_flow.layers.array.create_array import create_array


def array_write(x: Variable, i: Variable, array: Variable | None = None, name: str | None = None) -> Variable:
    """Puts x at place i, an integer Variable of one element, of an array (default: a new one), and returns the array.

    The array grows as needed. Op write_to_array. Raises InvalidArgumentError.
    """
    check_variable(x, "x", "array_write")
    array = create_array(x.dtype) if array is None else array_variable(array, "array_write")
    inputs = {"X": x, "I": place_variable(i, "array_write")}
    return LayerHelper("array_write", name=name).apply("write_to_array", inputs, outs={"Out": array})
