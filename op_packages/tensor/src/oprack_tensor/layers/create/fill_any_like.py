"""Layers of fill_any_like."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def zeros_like(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Zeros of the shape and dtype of x. out: receives them. Op fill_any_like."""
    return _full_like(x, 0.0, out, name, "zeros_like")


def ones_like(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Ones of the shape and dtype of x. out: receives them. Op fill_any_like."""
    return _full_like(x, 1.0, out, name, "ones_like")


def _full_like(x: Variable, value: float, out: Variable | None, name: str | None, layer: str) -> Variable:
    check_variable(x, "x", layer)
    outs = None if out is None else {"Out": check_variable(out, "out", layer)}
    helper = LayerHelper(layer, name=name)
    return helper.apply("fill_any_like", {"X": x}, {"value": value, "dtype": -1}, outs=outs, stop_gradient=True)
