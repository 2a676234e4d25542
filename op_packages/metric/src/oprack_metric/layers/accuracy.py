"""The layer accuracy."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """float32: the part of the rows whose label is among the k classes with the highest scores.

    input: scores [N, classes]; label: int64 [N, 1]. correct, total: int32 Variables that receive the counts. Ops top_k,
    accuracy. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "accuracy", FLOATS)
    check_variable(label, "label", "accuracy", {"int32", "int64"})
    helper = LayerHelper("accuracy", name=name)
    values, places = helper.apply("top_k", {"X": input}, {"k": k}, stop_gradient=True)
    given = {slot: v for slot, v in (("Correct", correct), ("Total", total)) if v is not None}
    inputs = {"Out": values, "Indices": places, "Label": label}
    found, *_ = helper.apply("accuracy", inputs, outs=given, stop_gradient=True)
    return found
