"""How layers of element-wise arithmetic are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._named import named, op_type_of

_BOTH = """x and y have one dtype; y's shape is that of x or a part of it, whose dims start at dim `axis` of x (-1: the
    last dims meet), with 1 where it is repeated. The result has the shape both broadcast to, and x's LoD."""


def elementwise_layer(module: str, words: str) -> Callable[..., Any]:
    """The layer of the op after which `module` is named; words: what it computes."""
    op_type = op_type_of(module)

    def layer(x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None) -> Variable:
        helper = LayerHelper(op_type, name=name, act=act)
        inputs = {"X": check_variable(x, "x", op_type), "Y": check_variable(y, "y", op_type)}
        return helper.append_activation(helper.apply(op_type, inputs, {"axis": axis}))

    doc = f"{words}\n\n    {_BOTH}\n    act: an activation of the result. Op {op_type}. Raises InvalidArgumentError."
    return named(layer, module, doc)
