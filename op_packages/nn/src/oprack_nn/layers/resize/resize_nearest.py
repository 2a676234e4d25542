"""The layer resize_nearest."""

from __future__ import annotations

from oprack_nn.layers.resize.image_resize import image_resize


def resize_nearest(input, out_shape=None, scale=None, name=None, align_corners=True, data_format="NCHW"):
    """image_resize that takes the nearest pixel."""
    return image_resize(input, out_shape, scale, name, "NEAREST", align_corners, 1, data_format)
