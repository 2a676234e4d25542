"""Layer of is_empty."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable


def is_empty(x, cond=None, name=None):
    """bool of one element: whether x has no elements. cond: a bool Variable that receives it. Op is_empty."""
    outs = None if cond is None else {"Out": check_variable(cond, "cond", "is_empty", {"bool"})}
    inputs = {"X": check_variable(x, "x", "is_empty")}
    return LayerHelper("is_empty", name=name).apply("is_empty", inputs, outs=outs, stop_gradient=True)
