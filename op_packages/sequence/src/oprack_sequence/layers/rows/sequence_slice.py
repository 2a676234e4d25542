"""Layer of sequence_slice."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """Of each sequence `length[i]` rows from row `offset[i]` on; both are [sequences, 1]. Op sequence_slice."""
    inputs = {
        "X": check_variable(input, "input", "sequence_slice"),
        "Offset": check_variable(offset, "offset", "sequence_slice", {"int32", "int64"}),
        "Length": check_variable(length, "length", "sequence_slice", {"int32", "int64"}),
    }
    return LayerHelper("sequence_slice", name=name).apply("sequence_slice", inputs)
