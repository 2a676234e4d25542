"""Layers of logic on truth values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._named import named


# How layers of logical ops of two inputs are made.
def _logical_layer(op_type: str, word: str) -> Callable[..., Any]:
    """The layer of the op `op_type`; word: what stands between x and y."""

    def layer(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
        helper = LayerHelper(op_type, name=name)
        inputs = {"X": check_variable(x, "x", op_type), "Y": check_variable(y, "y", op_type)}
        outs = None if out is None else {"Out": check_variable(out, "out", op_type, {"bool"})}
        return helper.apply(op_type, inputs, outs=outs, stop_gradient=True)

    doc = (
        f"Element-wise x {word} y, bool, of the shape both broadcast to.\n\n    out: a bool Variable that "
        f"receives the result. Op {op_type}. Raises InvalidArgumentError."
    )
    return named(layer, __name__, op_type, doc)


logical_and = _logical_layer("logical_and", "and")


def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Element-wise not x, bool, of x's shape. out: a bool Variable that receives the result. Op logical_not."""
    outs = None if out is None else {"Out": check_variable(out, "out", "logical_not", {"bool"})}
    x = check_variable(x, "x", "logical_not")
    return LayerHelper("logical_not", name=name).apply("logical_not", {"X": x}, outs=outs, stop_gradient=True)


logical_or = _logical_layer("logical_or", "or")


logical_xor = _logical_layer("logical_xor", "xor")
