"""Layer of sequence_enumerate."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def sequence_enumerate(input: Variable, win_size: int, pad_value: int = 0, name: str | None = None) -> Variable:
    """[rows, win_size]: each id and those after it in its sequence, pad_value beyond its end. Op sequence_enumerate."""
    input = check_variable(input, "input", "sequence_enumerate", {"int32", "int64"})
    attrs = {"win_size": win_size, "pad_value": pad_value}
    helper = LayerHelper("sequence_enumerate", name=name)
    return helper.apply("sequence_enumerate", {"X": input}, attrs, stop_gradient=True)
