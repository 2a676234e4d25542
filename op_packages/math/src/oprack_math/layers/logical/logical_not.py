"""The layer of logical_not."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Element-wise not x, bool, of x's shape. out: a bool Variable that receives the result. Op logical_not."""
    outs = None if out is None else {"Out": check_variable(out, "out", "logical_not", {"bool"})}
    x = check_variable(x, "x", "logical_not")
    return LayerHelper("logical_not", name=name).apply("logical_not", {"X": x}, outs=outs, stop_gradient=True)
