"""Layer of tile."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable, int_list


def expand(x: Variable, expand_times: Sequence[int], name: str | None = None) -> Variable:
    """x, repeated expand_times[i] times along dim i; Variables of one element may be among these. Op tile."""
    check_variable(x, "x", "expand")
    helper = LayerHelper("expand", name=name)
    times = int_list(helper, expand_times, "expand_times")
    inputs = {"X": x, "RepeatTimes": times.tensor, "repeat_times_tensor": times.tensors or None}
    return helper.apply("tile", inputs, {"repeat_times": times.values})
