"""The layer cross_entropy."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_nn.layers.loss._family import FLOATING


def cross_entropy(
    input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100, name: str | None = None
) -> Variable:
    r"""$$-\log input_{label}$$ of probabilities [..., classes], such as softmax gives; shape [..., 1].

    label: int64 [..., 1], where `ignore_index` counts 0; with soft_label probabilities of input's shape, and the sum
    $$-\sum_j label_j \log input_j$$. Ops cross_entropy2, cross_entropy. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "cross_entropy", FLOATING)
    check_variable(label, "label", "cross_entropy", FLOATING if soft_label else {"int32", "int64"})
    helper = LayerHelper("cross_entropy", name=name)
    if soft_label:
        return helper.apply("cross_entropy", {"X": input, "Label": label}, {"soft_label": True})
    y, shape, match = helper.apply("cross_entropy2", {"X": input, "Label": label}, {"ignore_index": ignore_index})
    shape.stop_gradient = match.stop_gradient = True
    return y
