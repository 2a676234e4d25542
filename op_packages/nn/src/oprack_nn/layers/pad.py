"""Layers of padding."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable


# The layer pad2d.
def pad2d(
    input: Variable,
    paddings: Sequence[int] = (0, 0, 0, 0),
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """[N, C, H, W] (or NHWC) with [top, bottom, left, right] more rows and columns.

    mode: "constant" (pad_value), "reflect" or "edge". Op pad2d. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "pad2d")
    attrs = {"mode": mode, "pad_value": float(pad_value), "data_format": data_format, "paddings": [0, 0, 0, 0]}
    inputs = {"X": input}
    if hasattr(paddings, "desc"):
        inputs["Paddings"] = check_variable(paddings, "paddings", "pad2d", {"int32"})
    else:
        attrs["paddings"] = list(paddings)
    return LayerHelper("pad2d", name=name).apply("pad2d", inputs, attrs)
