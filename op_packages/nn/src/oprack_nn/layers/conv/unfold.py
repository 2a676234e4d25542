"""The layer unfold."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable


def unfold(
    x: Variable,
    kernel_sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    paddings: int | Sequence[int] = 0,
    dilations: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
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
