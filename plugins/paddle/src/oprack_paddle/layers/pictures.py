"""paddle.vision.ops: its functions as layers."""

from __future__ import annotations

import math
from typing import Any

from oprack import nn

from oprack_paddle.functions import pictures


class _Pool(nn.Module):
    """A function of regions, with fixed sizes."""

    def __init__(self, output_size: Any, spatial_scale: float = 1.0) -> None:
        super().__init__()
        self._output_size, self._spatial_scale = output_size, spatial_scale


class RoIAlign(_Pool):
    """Regions of interest, sampled at points."""

    def forward(self, x: Any, boxes: Any, boxes_num: Any, aligned: bool = True) -> Any:
        """The regions."""
        return pictures.roi_align(x, boxes, boxes_num, self._output_size, self._spatial_scale, aligned=aligned)


class RoIPool(_Pool):
    """The largest elements of parts of regions of interest."""

    def forward(self, x: Any, boxes: Any, boxes_num: Any) -> Any:
        """The regions."""
        return pictures.roi_pool(x, boxes, boxes_num, self._output_size, self._spatial_scale)


class PSRoIPool(_Pool):
    """The means of parts of regions, each from channels of its own."""

    def forward(self, x: Any, boxes: Any, boxes_num: Any) -> Any:
        """The regions."""
        return pictures.psroi_pool(x, boxes, boxes_num, self._output_size, self._spatial_scale)


class DeformConv2D(nn.Module):
    """A convolution at places that are moved by offsets."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1,
        deformable_groups: int = 1, groups: int = 1, weight_attr: Any = None, bias_attr: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        size = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
        self._settings = (stride, padding, dilation, deformable_groups, groups)
        spread = math.sqrt(2.0 / (size[0] * size[1] * in_channels))
        from oprack.initializer import Normal

        self.weight = self.create_parameter(
            [out_channels, in_channels // groups, *size], weight_attr, default_initializer=Normal(0.0, spread)
        )
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x: Any, offset: Any, mask: Any = None) -> Any:
        """The convolution."""
        return pictures.deform_conv2d(x, offset, self.weight, self.bias, *self._settings, mask=mask)
