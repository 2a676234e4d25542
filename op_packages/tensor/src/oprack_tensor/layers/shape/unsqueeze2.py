"""Layer of unsqueeze2."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable, int_list


def unsqueeze(input: Variable, axes: int | Sequence[int], name: str | None = None) -> Variable:
    """input with dims of size 1 at `axes` of the result; Variables of one element may be among them. Op unsqueeze2."""
    check_variable(input, "input", "unsqueeze")
    helper = LayerHelper("unsqueeze2", name=name)
    dims = int_list(helper, axes, "axes")
    inputs = {"X": input, "AxesTensor": dims.tensor, "AxesTensorList": dims.tensors or None}
    return helper.apply("unsqueeze2", inputs, {"axes": dims.values if dims.known else None})
