"""Layer of im2sequence."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


def im2sequence(
    input: Variable,
    filter_size: int | Sequence[int] = 1,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    input_image_size: Variable | None = None,
    out_stride: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """Windows of images [N, C, H, W] as rows [windows, C h w], one sequence for each image.

    filter_size, stride: an int or [h, w]; padding: an int, [h, w] or [top, left, bottom, right]. input_image_size:
    real sizes [N, 2], with out_stride. Op im2sequence. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "im2sequence", FLOATS)

    def pair(value: int | Sequence[int]) -> list[int]:
        return [value] * 2 if isinstance(value, int) else list(value)

    pads = pair(padding)
    attrs = {"kernels": pair(filter_size), "strides": pair(stride), "paddings": pads * 2 if len(pads) == 2 else pads}
    if input_image_size is not None:
        attrs["out_stride"] = pair(out_stride)
    return LayerHelper("im2sequence", name=name).apply("im2sequence", {"X": input, "Y": input_image_size}, attrs)
