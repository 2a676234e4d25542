"""The layer mean_iou."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def mean_iou(
    input: Variable, label: Variable, num_classes: int, name: str | None = None
) -> tuple[Variable, Variable, Variable]:
    """(mean intersection over union, wrong predictions by class, right ones by class) of int labels of one shape.

    Op mean_iou.
    """
    inputs = {
        "Predictions": check_variable(input, "input", "mean_iou", {"int32", "int64"}),
        "Labels": check_variable(label, "label", "mean_iou", {"int32", "int64"}),
    }
    helper = LayerHelper("mean_iou", name=name)
    return helper.apply("mean_iou", inputs, {"num_classes": num_classes}, stop_gradient=True)
