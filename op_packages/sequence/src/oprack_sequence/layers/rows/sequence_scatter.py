"""Layer of sequence_scatter."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def sequence_scatter(input: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """Row i of input, with sequence i of updates added at the columns of sequence i of index. Op sequence_scatter."""
    inputs = {
        "X": check_variable(input, "input", "sequence_scatter"),
        "Ids": check_variable(index, "index", "sequence_scatter", {"int32", "int64"}),
        "Updates": check_variable(updates, "updates", "sequence_scatter"),
    }
    return LayerHelper("sequence_scatter", name=name).apply("sequence_scatter", inputs)
