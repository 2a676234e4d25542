"""Layers of powers."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._numbers import NUMBERS


def pow(x: Variable, factor: Variable | float = 1.0, name: str | None = None) -> Variable:
    """Appends op pow: x to the power of `factor`.

    Args:
        x: A Variable of numbers.
        factor: A number, or a Variable of one element.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.

    Raises:
        InvalidArgumentError: x or factor is no such Variable.
    """
    check_variable(x, "x", "pow", NUMBERS)
    helper = LayerHelper("pow", name=name)
    if isinstance(factor, int | float):
        return helper.apply("pow", {"X": x}, {"factor": float(factor)})
    return helper.apply("pow", {"X": x, "FactorTensor": check_variable(factor, "factor", "pow")})
