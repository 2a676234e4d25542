"""Layer of is_empty."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def is_empty(x: Variable, cond: Variable | None = None, name: str | None = None) -> Variable:
    """bool of one element: whether x has no elements. cond: a bool Variable that receives it. Op is_empty."""
    outs = None if cond is None else {"Out": check_variable(cond, "cond", "is_empty", {"bool"})}
    inputs = {"X": check_variable(x, "x", "is_empty")}
    return LayerHelper("is_empty", name=name).apply("is_empty", inputs, outs=outs, stop_gradient=True)
