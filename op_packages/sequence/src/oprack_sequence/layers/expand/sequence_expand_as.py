"""Layer of sequence_expand_as."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Row i of x as often as sequence i of y has rows. Op sequence_expand_as."""
    inputs = {"X": check_variable(x, "x", "sequence_expand_as"), "Y": check_variable(y, "y", "sequence_expand_as")}
    return LayerHelper("sequence_expand_as", name=name).apply("sequence_expand_as", inputs)
