"""Layer of warpctc."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """CTC loss [sequences, 1] of unscaled scores.

    input: [rows, classes + 1] with LoD, or [T, sequences, classes + 1] with input_length [sequences]; label: int32
    [rows, 1] with LoD, or [sequences, L] with label_length. blank: the class that stands for nothing. norm_by_times:
    gradients are divided by the length. Op warpctc. Raises InvalidArgumentError.
    """
    inputs = {
        "Logits": check_variable(input, "input", "warpctc", FLOATS),
        "Label": check_variable(label, "label", "warpctc", {"int32", "int64"}),
        "LogitsLength": input_length,
        "LabelLength": label_length,
    }
    attrs = {"blank": blank, "norm_by_times": norm_by_times}
    return LayerHelper("warpctc", name=name).apply("warpctc", inputs, attrs)
