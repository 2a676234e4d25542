"""The layer mse_loss."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable

from oprack_nn.layers.loss.square_error_cost import square_error_cost


def mse_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """Mean of (input - label)^2. Ops elementwise_sub, square, reduce_mean."""
    helper = LayerHelper("mse_loss", name=name)
    return helper.apply("reduce_mean", {"X": square_error_cost(input, label)}, {"reduce_all": True})
