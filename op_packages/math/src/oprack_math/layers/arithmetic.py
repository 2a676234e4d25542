"""Layers of arithmetic with one tensor, and of sums of several."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS

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


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """x + value for x of one element; in_place: in x itself, so that a loop counts. Op increment."""
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


def sums(input: Sequence[Variable], out: Variable | None = None, name: str | None = None) -> Variable:
    """Element-wise sum of a list of variables of one shape and dtype; SelectedRows may be among them.

    out: a Variable that receives the result. Op sum. Raises InvalidArgumentError.
    """
    values = list(input) if isinstance(input, list | tuple) else [input]
    if not values:
        raise InvalidArgumentError("sums: input is empty; expected one variable or more")
    outs = None if out is None else {"Out": check_variable(out, "out", "sums")}
    values = [check_variable(v, "input", "sums") for v in values]
    return LayerHelper("sum", name=name).apply("sum", {"X": values}, outs=outs)
