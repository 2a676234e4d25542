"""Layer of shape."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def shape(input: Variable, name: str | None = None) -> Variable:
    """int32 [rank]: the dims that input has when the program runs. Op shape."""
    check_variable(input, "input", "shape")
    return LayerHelper("shape", name=name).apply("shape", {"Input": input}, stop_gradient=True)
