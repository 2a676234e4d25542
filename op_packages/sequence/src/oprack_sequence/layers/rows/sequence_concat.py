"""Layer of sequence_concat."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable


def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """Sequence i of the result is sequence i of each variable of the list, one after another. Op sequence_concat."""
    values = [check_variable(v, "input", "sequence_concat") for v in input]
    return LayerHelper("sequence_concat", name=name).apply("sequence_concat", {"X": values})
