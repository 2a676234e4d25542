"""Layers of logic on truth values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._named import named

_DOC = """Appends op {op_type}: x {word} y, element by element.

Args:
    x: A Variable of bool.
    y: A Variable of bool, whose shape broadcasts with that of x.
    out: A Variable of bool that receives the result; None: a new one.
    name: Prefix of the names of what the layer makes; None: that of the layer.

Returns:
    Variable of bool, of the shape to which x and y broadcast.

Raises:
    InvalidArgumentError: An argument is no such Variable, or the shapes do not broadcast.
"""


# How layers of logical ops of two inputs are made.
def _logical_layer(op_type: str, word: str) -> Callable[..., Any]:
    """The layer of the op `op_type`; word: what stands between x and y."""

    def layer(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
        helper = LayerHelper(op_type, name=name)
        inputs = {"X": check_variable(x, "x", op_type), "Y": check_variable(y, "y", op_type)}
        outs = None if out is None else {"Out": check_variable(out, "out", op_type, {"bool"})}
        return helper.apply(op_type, inputs, outs=outs, stop_gradient=True)

    return named(layer, __name__, op_type, _DOC.format(op_type=op_type, word=word))


logical_and = _logical_layer("logical_and", "and")


def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Appends op logical_not: not x, element by element.

    Args:
        x: A Variable of bool.
        out: A Variable of bool that receives the result; None: a new one.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of bool of the shape of x.
    """
    outs = None if out is None else {"Out": check_variable(out, "out", "logical_not", {"bool"})}
    x = check_variable(x, "x", "logical_not")
    return LayerHelper("logical_not", name=name).apply("logical_not", {"X": x}, outs=outs, stop_gradient=True)


logical_or = _logical_layer("logical_or", "or")


logical_xor = _logical_layer("logical_xor", "xor")
