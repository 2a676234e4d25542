"""Layer of concat."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_tensor.layers.join._variables import variables


def concat(input: Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """A list of variables one after another along `axis`, an int or a Variable of one element. Op concat."""
    helper = LayerHelper("concat", name=name)
    inputs, attrs = {"X": variables(input, "input", "concat")}, {}
    if isinstance(axis, int):
        attrs["axis"] = axis
    else:
        inputs["AxisTensor"] = check_variable(axis, "axis", "concat", {"int32", "int64"})
    return helper.apply("concat", inputs, attrs)
