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
    """Appends op pad2d: images with more rows and columns.

    Args:
        input: Images [N, C, H, W], or [N, H, W, C] with data_format="NHWC".
        paddings: How many: [top, bottom, left, right], or a Variable of int32 with these.
        mode: What to add: "constant", "reflect" or "edge".
        pad_value: The number that "constant" adds.
        data_format: "NCHW" or "NHWC".
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        The larger images.

    Raises:
        InvalidArgumentError: input is no Variable, or an argument is out of range.
    """
    check_variable(input, "input", "pad2d")
    attrs = {"mode": mode, "pad_value": float(pad_value), "data_format": data_format, "paddings": [0, 0, 0, 0]}
    inputs = {"X": input}
    if hasattr(paddings, "desc"):
        inputs["Paddings"] = check_variable(paddings, "paddings", "pad2d", {"int32"})
    else:
        attrs["paddings"] = list(paddings)
    return LayerHelper("pad2d", name=name).apply("pad2d", inputs, attrs)
