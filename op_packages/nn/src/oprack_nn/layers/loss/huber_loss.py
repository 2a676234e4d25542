"""The layer huber_loss."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_nn.layers.loss._family import FLOATING


def huber_loss(input: Variable, label: Variable, delta: float, name: str | None = None) -> Variable:
    r"""$$d^2 / 2$$ where $$|d| \le \delta$$, else $$\delta |d| - \delta^2 / 2$$; d = label - input. Op huber_loss."""
    inputs = {
        "X": check_variable(input, "input", "huber_loss", FLOATING),
        "Y": check_variable(label, "label", "huber_loss", FLOATING),
    }
    return LayerHelper("huber_loss", name=name).apply("huber_loss", inputs, {"delta": float(delta)})
