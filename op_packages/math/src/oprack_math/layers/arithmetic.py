"""Layers of arithmetic with one tensor, and of sums of several."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS

from oprack_math.layers._numbers import NUMBERS


def clip(x: Variable, min: float, max: Variable | float, name: str | None = None) -> Variable:
    """Appends op clip: values outside of [min, max] become these bounds.

    Args:
        x: A Variable of numbers.
        min: The lower bound, a number or a Variable of one element.
        max: The upper bound, a number or a Variable of one element.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.

    Raises:
        InvalidArgumentError: x is no Variable of numbers.
    """
    check_variable(x, "x", "clip", NUMBERS)
    inputs, attrs = {"X": x}, {}
    for slot, value in (("Min", min), ("Max", max)):
        if isinstance(value, int | float):
            attrs[slot.lower()] = float(value)
        else:
            # the attribute is required, and the tensor overrides it
            inputs[slot], attrs[slot.lower()] = check_variable(value, slot.lower(), "clip"), 0.0
    return LayerHelper("clip", name=name).apply("clip", inputs, attrs)


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """Appends op increment: x + value.

    Args:
        x: A Variable of one number.
        value: What is added.
        in_place: Whether the result is x itself, so that a loop counts; False: a new Variable.

    Returns:
        x, or the new Variable.

    Raises:
        InvalidArgumentError: x is no Variable of numbers.
    """
    check_variable(x, "x", "increment", FLOATS | {"int32", "int64"})
    outs = {"Out": x} if in_place else None
    return LayerHelper("increment").apply("increment", {"X": x}, {"step": float(value)}, outs=outs)


def scale(
    x: Variable,
    scale: Variable | float = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Appends op scale: scale * x + bias, or with bias_after_scale=False scale * (x + bias).

    Args:
        x: A Variable of numbers.
        scale: A number, or a Variable of one element.
        bias: A number.
        bias_after_scale: Whether the bias is added after the product.
        act: The op that the result goes through, such as "relu"; None: none.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.

    Raises:
        InvalidArgumentError: x or scale is no Variable of numbers.
    """
    check_variable(x, "x", "scale", NUMBERS)
    helper = LayerHelper("scale", name=name, act=act)
    inputs, attrs = {"X": x}, {"bias": float(bias), "bias_after_scale": bias_after_scale}
    if isinstance(scale, int | float):
        attrs["scale"] = float(scale)
    else:
        inputs["ScaleTensor"] = check_variable(scale, "scale", "scale", NUMBERS)
    return helper.append_activation(helper.apply("scale", inputs, attrs))


def sums(input: Sequence[Variable], out: Variable | None = None, name: str | None = None) -> Variable:
    """Appends op sum: the element-wise sum of Variables.

    Args:
        input: Variables of one shape and dtype; SelectedRows may be among them.
        out: A Variable that receives the result; None: a new one.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of their shape and dtype.

    Raises:
        InvalidArgumentError: input is empty, or holds something else.
    """
    values = list(input) if isinstance(input, list | tuple) else [input]
    if not values:
        raise InvalidArgumentError("sums: input is empty; expected one variable or more")
    outs = None if out is None else {"Out": check_variable(out, "out", "sums")}
    values = [check_variable(v, "input", "sums") for v in values]
    return LayerHelper("sum", name=name).apply("sum", {"X": values}, outs=outs)
