"""Layer of sequence_softmax."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


def sequence_softmax(input: Variable, name: str | None = None) -> Variable:
    """Softmax over the rows of each sequence; input: [rows] or [rows, 1] with LoD. Op sequence_softmax."""
    check_variable(input, "input", "sequence_softmax", FLOATS)
    return LayerHelper("sequence_softmax", name=name).apply("sequence_softmax", {"X": input})
