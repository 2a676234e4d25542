"""Layers of comparisons, and whether all is finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._named import named

_DOC = """Appends op {op_type}: x {sign} y, element by element.

Args:
    x: A Variable.
    y: A Variable of the dtype of x, whose shape broadcasts with that of x.
    cond: A Variable of bool that receives the result, such as the condition of a While; None: a new one.
    name: Prefix of the names of what the layer makes; None: that of the layer.

Returns:
    Variable of bool, of the shape to which x and y broadcast.

Raises:
    InvalidArgumentError: An argument is no such Variable, or the shapes do not broadcast.
"""


# How layers of comparisons are made.
def _compare_layer(op_type: str, sign: str) -> Callable[..., Any]:
    """The layer of the op `op_type`; sign: what stands between x and y."""

    def layer(x: Variable, y: Variable, cond: Variable | None = None, name: str | None = None) -> Variable:
        helper = LayerHelper(op_type, name=name)
        inputs = {"X": check_variable(x, "x", op_type), "Y": check_variable(y, "y", op_type)}
        outs = None if cond is None else {"Out": check_variable(cond, "cond", op_type, {"bool"})}
        return helper.apply(op_type, inputs, outs=outs, stop_gradient=True)

    return named(layer, __name__, op_type, _DOC.format(op_type=op_type, sign=sign))


equal = _compare_layer("equal", "==")


greater_equal = _compare_layer("greater_equal", ">=")


greater_than = _compare_layer("greater_than", ">")


def isfinite(x: Variable, name: str | None = None) -> Variable:
    """Tells whether no element is infinite or NaN, by ops isfinite_v2 and reduce_all.

    Args:
        x: A Variable of numbers.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of bool [1].
    """
    helper = LayerHelper("isfinite", name=name)
    each = helper.apply("isfinite_v2", {"X": check_variable(x, "x", "isfinite")}, stop_gradient=True)
    every = helper.apply("reduce_all", {"X": each}, {"reduce_all": True}, stop_gradient=True)
    return helper.apply("reshape2", {"X": every}, {"shape": [1]}, stop_gradient=True)


less_equal = _compare_layer("less_equal", "<=")


less_than = _compare_layer("less_than", "<")


not_equal = _compare_layer("not_equal", "!=")
