"""The layer of scale."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._numbers import NUMBERS


def scale(
    x: Variable,
    scale: Variable | float = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """scale * x + bias, or with bias_after_scale False scale * (x + bias); x of any shape and number dtype.

    scale: a number, or a Variable of one element. Op scale. Raises InvalidArgumentError.
    """
    check_variable(x, "x", "scale", NUMBERS)
    helper = LayerHelper("scale", name=name, act=act)
    inputs, attrs = {"X": x}, {"bias": float(bias), "bias_after_scale": bias_after_scale}
    if isinstance(scale, int | float):
        attrs["scale"] = float(scale)
    else:
        inputs["ScaleTensor"] = check_variable(scale, "scale", "scale", NUMBERS)
    return helper.append_activation(helper.apply("scale", inputs, attrs))
