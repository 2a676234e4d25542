"""The layer square_error_cost."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_nn.layers.loss._family import FLOATING


def square_error_cost(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """(input - label)^2, element by element. Ops elementwise_sub, square. Raises InvalidArgumentError."""
    helper = LayerHelper("square_error_cost", name=name)
    x = check_variable(input, "input", "square_error_cost", FLOATING)
    y = check_variable(label, "label", "square_error_cost", FLOATING)
    return helper.apply("square", {"X": helper.apply("elementwise_sub", {"X": x, "Y": y})})
