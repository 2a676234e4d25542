"""The layer softmax."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable


def softmax(input, axis=-1, name=None):
    r"""$$Out = e^{x} / \sum e^{x}$$ along `axis`; input of any shape and floating dtype. Op softmax."""
    check_variable(input, "input", "softmax")
    return LayerHelper("softmax", name=name).apply("softmax", {"X": input}, {"axis": axis})
