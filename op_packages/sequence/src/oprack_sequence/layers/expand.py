"""Rows and sequences repeated for another LoD."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


# Layer of sequence_expand.
def sequence_expand(x: Variable, y: Variable | int, ref_level: int = -1, name: str | None = None) -> Variable:
    """Appends op sequence_expand: sequence (or row) i of x as often as sequence i of y has parts.

    Args:
        x: A Variable.
        y: A Variable with LoD.
        ref_level: The LoD level of y whose parts count; -1: the last.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the dtype of x.
    """
    inputs = {"X": check_variable(x, "x", "sequence_expand"), "Y": check_variable(y, "y", "sequence_expand")}
    return LayerHelper("sequence_expand", name=name).apply("sequence_expand", inputs, {"ref_level": ref_level})


# Layer of sequence_expand_as.
def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Appends op sequence_expand_as: row i of x as often as sequence i of y has rows.

    Args:
        x: A Variable.
        y: A Variable with LoD.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the dtype of x, with the LoD of y.
    """
    inputs = {"X": check_variable(x, "x", "sequence_expand_as"), "Y": check_variable(y, "y", "sequence_expand_as")}
    return LayerHelper("sequence_expand_as", name=name).apply("sequence_expand_as", inputs)
