"""The layer softmax_with_cross_entropy."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_nn.layers.loss._family import FLOATING


def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """cross_entropy(softmax(logits), label) in one step, which never overflows; `axis` has size 1 in the loss.

    label: int64 with size 1 along `axis`, or with soft_label probabilities of logits' shape. return_softmax: returns
    (loss, softmax). Op softmax_with_cross_entropy. Raises InvalidArgumentError.
    """
    check_variable(logits, "logits", "softmax_with_cross_entropy", FLOATING)
    labels = FLOATING if soft_label else {"uint8", "int8", "int16", "int32", "int64"}
    check_variable(label, "label", "softmax_with_cross_entropy", labels)
    attrs = {
        "soft_label": soft_label,
        "ignore_index": ignore_index,
        "numeric_stable_mode": numeric_stable_mode,
        "axis": axis,
    }
    helper = LayerHelper("softmax_with_cross_entropy", name=name)
    softmax, loss = helper.apply("softmax_with_cross_entropy", {"Logits": logits, "Label": label}, attrs)
    return (loss, softmax) if return_softmax else loss
