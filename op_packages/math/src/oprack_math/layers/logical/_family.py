"""How layers of logical ops of two inputs are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._named import named, op_type_of


def logical_layer(module: str, word: str) -> Callable[..., Any]:
    """The layer of the op after which `module` is named; word: what stands between x and y."""
    op_type = op_type_of(module)

    def layer(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
        helper = LayerHelper(op_type, name=name)
        inputs = {"X": check_variable(x, "x", op_type), "Y": check_variable(y, "y", op_type)}
        outs = None if out is None else {"Out": check_variable(out, "out", op_type, {"bool"})}
        return helper.apply(op_type, inputs, outs=outs, stop_gradient=True)

    doc = (
        f"Element-wise x {word} y, bool, of the shape both broadcast to.\n\n    out: a bool Variable that "
        f"receives the result. Op {op_type}. Raises InvalidArgumentError."
    )
    return named(layer, module, doc)
