"""The layer resize_bilinear."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import Variable

from oprack_nn.layers.resize.image_resize import image_resize


def resize_bilinear(
    input: Variable,
    out_shape: Sequence[Variable | int] | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """image_resize by bilinear interpolation."""
    return image_resize(input, out_shape, scale, name, "BILINEAR", align_corners, align_mode, data_format)
