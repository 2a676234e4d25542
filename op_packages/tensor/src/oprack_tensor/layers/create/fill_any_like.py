"""Layers of fill_any_like."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable


def zeros_like(x, out=None, name=None):
    """Zeros of the shape and dtype of x. out: receives them. Op fill_any_like."""
    return _full_like(x, 0.0, out, name, "zeros_like")


def ones_like(x, out=None, name=None):
    """Ones of the shape and dtype of x. out: receives them. Op fill_any_like."""
    return _full_like(x, 1.0, out, name, "ones_like")


def _full_like(x, value, out, name, layer):
    check_variable(x, "x", layer)
    outs = None if out is None else {"Out": check_variable(out, "out", layer)}
    helper = LayerHelper(layer, name=name)
    return helper.apply("fill_any_like", {"X": x}, {"value": value, "dtype": -1}, outs=outs, stop_gradient=True)
