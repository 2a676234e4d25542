"""Layer of flatten2."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """x as a matrix whose rows are the dims before `axis`. Op flatten2. Raises InvalidArgumentError."""
    check_variable(x, "x", "flatten")
    return LayerHelper("flatten", name=name).apply("flatten2", {"X": x}, {"axis": axis})
