"""The layer of isfinite."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def isfinite(x: Variable, name: str | None = None) -> Variable:
    """bool [1]: whether no element of x is inf or nan. Ops isfinite_v2, reduce_all."""
    helper = LayerHelper("isfinite", name=name)
    each = helper.apply("isfinite_v2", {"X": check_variable(x, "x", "isfinite")}, stop_gradient=True)
    every = helper.apply("reduce_all", {"X": each}, {"reduce_all": True}, stop_gradient=True)
    return helper.apply("reshape2", {"X": every}, {"shape": [1]}, stop_gradient=True)
