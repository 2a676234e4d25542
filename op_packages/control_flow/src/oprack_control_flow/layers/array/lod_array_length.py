"""Layer of lod_array_length."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable

from oprack_control_flow.layers.array._arguments import array_variable


def array_length(array: Variable, name: str | None = None) -> Variable:
    """int64 [1]: the number of places. Op lod_array_length."""
    inputs = {"X": array_variable(array, "array_length")}
    return LayerHelper("array_length", name=name).apply("lod_array_length", inputs, stop_gradient=True)
