"""The layer unfold."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable


def unfold(x, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    """[N, C * h * w, L]: the windows of [N, C, H, W] as columns; sizes are ints or [h, w]. Op unfold."""
    check_variable(x, "x", "unfold")
    pads = [paddings] * 4 if isinstance(paddings, int) else list(paddings)
    attrs = {
        "kernel_sizes": [kernel_sizes] * 2 if isinstance(kernel_sizes, int) else list(kernel_sizes),
        "strides": [strides] * 2 if isinstance(strides, int) else list(strides),
        "paddings": pads * 2 if len(pads) == 2 else pads,
        "dilations": [dilations] * 2 if isinstance(dilations, int) else list(dilations),
    }
    return LayerHelper("unfold", name=name).apply("unfold", {"X": x}, attrs)
