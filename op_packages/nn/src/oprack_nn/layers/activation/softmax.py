"""The layer softmax."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def softmax(input: Variable, axis: int = -1, name: str | None = None) -> Variable:
    r"""$$Out = e^{x} / \sum e^{x}$$ along `axis`; input of any shape and floating dtype. Op softmax."""
    check_variable(input, "input", "softmax")
    return LayerHelper("softmax", name=name).apply("softmax", {"X": input}, {"axis": axis})
