"""The layer label_smooth."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_nn.layers.loss._family import FLOATING


def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: object = "float32",
    name: str | None = None,
) -> Variable:
    """(1 - epsilon) * label + epsilon * prior_dist; without one, 1 / classes. label: one-hot [..., classes].

    dtype is accepted for old programs: the result has the dtype of label. Op label_smooth.
    """
    check_variable(label, "label", "label_smooth", FLOATING)
    inputs = {"X": label, "PriorDist": prior_dist}
    helper = LayerHelper("label_smooth", name=name)
    return helper.apply("label_smooth", inputs, {"epsilon": float(epsilon)})
