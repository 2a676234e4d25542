"""The layer margin_rank_loss."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_nn.layers.loss._family import FLOATING


def margin_rank_loss(
    label: Variable, left: Variable, right: Variable, margin: float = 0.1, name: str | None = None
) -> Variable:
    """max(0, -label * (left - right) + margin), shapes [N, 1], label 1 or -1. Op margin_rank_loss."""
    layer = "margin_rank_loss"
    inputs = {
        "Label": check_variable(label, "label", layer, FLOATING),
        "X1": check_variable(left, "left", layer, FLOATING),
        "X2": check_variable(right, "right", layer, FLOATING),
    }
    return LayerHelper(layer, name=name).apply(layer, inputs, {"margin": float(margin)})
