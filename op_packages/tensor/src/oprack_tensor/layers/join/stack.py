"""Layer of stack."""

from __future__ import annotations

from oprack.layers import LayerHelper

from oprack_tensor.layers.join._variables import variables


def stack(x, axis=0, name=None):
    """A list of variables of one shape along a new dim `axis`. Op stack."""
    return LayerHelper("stack", name=name).apply("stack", {"X": variables(x, "x", "stack")}, {"axis": axis})
