"""The layer resize_bilinear."""

from __future__ import annotations

from oprack_nn.layers.resize.image_resize import image_resize


def resize_bilinear(input, out_shape=None, scale=None, name=None, align_corners=True, align_mode=1, data_format="NCHW"):
    """image_resize by bilinear interpolation."""
    return image_resize(input, out_shape, scale, name, "BILINEAR", align_corners, align_mode, data_format)
