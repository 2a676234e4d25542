"""The layer log_loss."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_nn.layers.loss._family import FLOATING


def log_loss(input: Variable, label: Variable, epsilon: float = 1e-4, name: str | None = None) -> Variable:
    r"""$$-label \log(input + \epsilon) - (1 - label) \log(1 - input + \epsilon)$$, shapes [N, 1]. Op log_loss."""
    inputs = {
        "Predicted": check_variable(input, "input", "log_loss", FLOATING),
        "Labels": check_variable(label, "label", "log_loss", FLOATING),
    }
    return LayerHelper("log_loss", name=name).apply("log_loss", inputs, {"epsilon": float(epsilon)})
