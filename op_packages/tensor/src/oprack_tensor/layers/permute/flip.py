"""Layer of flip."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_tensor.layers._ints import ints


def reverse(x: Variable, axis: int, name: str | None = None) -> Variable:
    """x with the order along `axis`, an int or a list of them, turned round. Op flip."""
    check_variable(x, "x", "reverse")
    return LayerHelper("reverse", name=name).apply("flip", {"X": x}, {"axis": ints(axis)})
