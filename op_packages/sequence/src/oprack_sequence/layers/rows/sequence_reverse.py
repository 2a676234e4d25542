"""Layer of sequence_reverse."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """The rows of each sequence in reverse order. Op sequence_reverse."""
    x = check_variable(x, "x", "sequence_reverse")
    return LayerHelper("sequence_reverse", name=name).apply("sequence_reverse", {"X": x})
