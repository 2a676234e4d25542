"""Layer of sequence_expand."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def sequence_expand(x: Variable, y: Variable | int, ref_level: int = -1, name: str | None = None) -> Variable:
    """Sequence (or row) i of x as often as sequence i of y has parts at LoD level ref_level. Op sequence_expand."""
    inputs = {"X": check_variable(x, "x", "sequence_expand"), "Y": check_variable(y, "y", "sequence_expand")}
    return LayerHelper("sequence_expand", name=name).apply("sequence_expand", inputs, {"ref_level": ref_level})
