"""Layers of element-wise arithmetic with two inputs that broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._named import named

# How layers of element-wise arithmetic are made.
_BOTH = """x and y have one dtype; y's shape is that of x or a part of it, whose dims start at dim `axis` of x (-1: the
    last dims meet), with 1 where it is repeated. The result has the shape both broadcast to, and x's LoD."""


def _elementwise_layer(op_type: str, words: str) -> Callable[..., Any]:
    """The layer of the op `op_type`; words: what it computes."""

    def layer(x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None) -> Variable:
        helper = LayerHelper(op_type, name=name, act=act)
        inputs = {"X": check_variable(x, "x", op_type), "Y": check_variable(y, "y", op_type)}
        return helper.append_activation(helper.apply(op_type, inputs, {"axis": axis}))

    doc = f"{words}\n\n    {_BOTH}\n    act: an activation of the result. Op {op_type}. Raises InvalidArgumentError."
    return named(layer, __name__, op_type, doc)


elementwise_add = _elementwise_layer("elementwise_add", "x + y.")


elementwise_div = _elementwise_layer("elementwise_div", "x / y.")


elementwise_floordiv = _elementwise_layer("elementwise_floordiv", "x / y, rounded down.")


elementwise_max = _elementwise_layer("elementwise_max", "The larger of x and y.")


elementwise_min = _elementwise_layer("elementwise_min", "The smaller of x and y.")


elementwise_mod = _elementwise_layer("elementwise_mod", "Remainder of x / y, with the sign of y.")


elementwise_mul = _elementwise_layer("elementwise_mul", "x * y.")


elementwise_pow = _elementwise_layer("elementwise_pow", "x to the power of y.")


elementwise_sub = _elementwise_layer("elementwise_sub", "x - y.")
