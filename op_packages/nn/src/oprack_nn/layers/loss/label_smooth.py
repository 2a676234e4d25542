"""The layer label_smooth."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable

from oprack_nn.layers.loss._family import FLOATING


def label_smooth(label, prior_dist=None, epsilon=0.1, dtype="float32", name=None):
    """(1 - epsilon) * label + epsilon * prior_dist; without one, 1 / classes. label: one-hot [..., classes].

    dtype is accepted for old programs: the result has the dtype of label. Op label_smooth.
    """
    check_variable(label, "label", "label_smooth", FLOATING)
    inputs = {"X": label, "PriorDist": prior_dist}
    helper = LayerHelper("label_smooth", name=name)
    return helper.apply("label_smooth", inputs, {"epsilon": float(epsilon)})
