"""Layer of sequence_unpad."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def sequence_unpad(x: Variable, length: Variable | None, name: str | None = None) -> Variable:
    """Undoes sequence_pad: rows with LoD, of [sequences, maxlen, ...] and int64 lengths. Op sequence_unpad."""
    inputs = {
        "X": check_variable(x, "x", "sequence_unpad"),
        "Length": check_variable(length, "length", "sequence_unpad"),
    }
    return LayerHelper("sequence_unpad", name=name).apply("sequence_unpad", inputs)
