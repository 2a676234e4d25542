"""The layer resize_nearest."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import Variable

from oprack_nn.layers.resize.image_resize import image_resize


def resize_nearest(
    input: Variable,
    out_shape: Sequence[int | Variable] | Variable | None = None,
    scale: float | None = None,
    name: str | None = None,
    align_corners: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """image_resize that takes the nearest pixel."""
    return image_resize(input, out_shape, scale, name, "NEAREST", align_corners, 1, data_format)
