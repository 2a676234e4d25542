"""The layer sigmoid_cross_entropy_with_logits."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_nn.layers.loss._family import FLOATING


def sigmoid_cross_entropy_with_logits(
    x: Variable, label: Variable, ignore_index: int = -100, name: str | None = None, normalize: bool = False
) -> Variable:
    """Element-wise cross entropy of sigmoid(x) and label in [0, 1], of one shape; `ignore_index` as a label counts 0.

    normalize: divide by the number of labels that count. Op sigmoid_cross_entropy_with_logits.
    """
    layer = "sigmoid_cross_entropy_with_logits"
    inputs = {"X": check_variable(x, "x", layer, FLOATING), "Label": check_variable(label, "label", layer, FLOATING)}
    attrs = {"ignore_index": ignore_index, "normalize": normalize}
    return LayerHelper(layer, name=name).apply(layer, inputs, attrs)
