"""Layer of sequence_reshape."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable


def sequence_reshape(input, new_dim, name=None):
    """The elements of each sequence as rows of `new_dim`. Op sequence_reshape."""
    input = check_variable(input, "input", "sequence_reshape")
    return LayerHelper("sequence_reshape", name=name).apply("sequence_reshape", {"X": input}, {"new_dim": new_dim})
