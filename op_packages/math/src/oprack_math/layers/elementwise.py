"""Layers of element-wise arithmetic with two inputs that broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._named import named

# How layers of element-wise arithmetic are made.
_DOC = """Appends op {op_type}: {words}

Args:
    x: A Variable.
    y: A Variable of the dtype of x, whose shape is that of x or a part of it, with 1 where it is repeated.
    axis: The dim of x at which the dims of y start; -1: the last dims meet.
    act: The op that the result goes through, such as "relu"; None: none.
    name: Prefix of the names of what the layer makes; None: that of the layer.

Returns:
    Variable of the shape to which x and y broadcast, with the LoD of x.

Raises:
    InvalidArgumentError: An argument is no Variable, or the shapes do not broadcast.
"""


def _elementwise_layer(op_type: str, words: str) -> Callable[..., Any]:
    """The layer of the op `op_type`; words: what it computes."""

    def layer(x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None) -> Variable:
        helper = LayerHelper(op_type, name=name, act=act)
        inputs = {"X": check_variable(x, "x", op_type), "Y": check_variable(y, "y", op_type)}
        return helper.append_activation(helper.apply(op_type, inputs, {"axis": axis}))

    return named(layer, __name__, op_type, _DOC.format(op_type=op_type, words=words))


elementwise_add = _elementwise_layer("elementwise_add", "x + y.")


elementwise_div = _elementwise_layer("elementwise_div", "x / y.")


elementwise_floordiv = _elementwise_layer("elementwise_floordiv", "x / y, rounded down.")


elementwise_max = _elementwise_layer("elementwise_max", "the larger of x and y.")


elementwise_min = _elementwise_layer("elementwise_min", "the smaller of x and y.")


elementwise_mod = _elementwise_layer("elementwise_mod", "the remainder of x / y, with the sign of y.")


elementwise_mul = _elementwise_layer("elementwise_mul", "x * y.")


elementwise_pow = _elementwise_layer("elementwise_pow", "x to the power of y.")


elementwise_sub = _elementwise_layer("elementwise_sub", "x - y.")
