"""Layer of sequence_concat."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable


def sequence_concat(input, name=None):
    """Sequence i of the result is sequence i of each variable of the list, one after another. Op sequence_concat."""
    values = [check_variable(v, "input", "sequence_concat") for v in input]
    return LayerHelper("sequence_concat", name=name).apply("sequence_concat", {"X": values})
