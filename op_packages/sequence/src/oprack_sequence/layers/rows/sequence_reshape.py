"""Layer of sequence_reshape."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def sequence_reshape(input: Variable, new_dim: int, name: str | None = None) -> Variable:
    """The elements of each sequence as rows of `new_dim`. Op sequence_reshape."""
    input = check_variable(input, "input", "sequence_reshape")
    return LayerHelper("sequence_reshape", name=name).apply("sequence_reshape", {"X": input}, {"new_dim": new_dim})
