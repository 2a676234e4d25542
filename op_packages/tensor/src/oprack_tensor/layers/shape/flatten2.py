"""Layer of flatten2."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable


def flatten(x, axis=1, name=None):
    """x as a matrix whose rows are the dims before `axis`. Op flatten2. Raises InvalidArgumentError."""
    check_variable(x, "x", "flatten")
    return LayerHelper("flatten", name=name).apply("flatten2", {"X": x}, {"axis": axis})
