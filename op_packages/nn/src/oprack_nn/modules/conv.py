"""Convolutions and pooling of images [N, C, H, W]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oprack import functional as F
from oprack import initializer
from oprack.nn import Module

if TYPE_CHECKING:
    from oprack import Tensor
    from oprack.layers import Initializer, ParamAttrLike


def _pair(value: int | Sequence[int]) -> list[int]:
    return [int(value)] * 2 if isinstance(value, int) else [int(v) for v in value]


class Conv2D(Module):
    """Op conv2d, or depthwise_conv2d where every channel has filters of its own, and a bias per channel.

    kernel_size, stride, padding, dilation: an int or one per dim; padding also "SAME" or "VALID".
    """

    op_type = "conv2d"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
    ) -> None:
        super().__init__()
        self.attrs = {"strides": _pair(stride), "dilations": _pair(dilation), "groups": groups}
        if isinstance(padding, str):
            self.attrs["padding_algorithm"] = padding
        else:
            self.attrs["paddings"] = _pair(padding)
        kernel = _pair(kernel_size)
        self.weight = self.create_parameter(
            self._weight_shape(in_channels, out_channels, kernel, groups),
            weight_attr,
            default_initializer=self._initializer(in_channels, kernel, groups),
        )
        self.bias = None if bias_attr is False else self.create_parameter([out_channels], bias_attr, is_bias=True)
        if self.op_type == "conv2d" and groups == in_channels and groups > 1 and out_channels % in_channels == 0:
            self.op_type = "depthwise_conv2d"

    @staticmethod
    def _weight_shape(in_channels: int, out_channels: int, kernel: list[int], groups: int) -> list[int]:
        return [out_channels, in_channels // groups, *kernel]

    @staticmethod
    def _initializer(in_channels: int, kernel: list[int], groups: int) -> Initializer:
        return initializer.Normal(0.0, math.sqrt(2.0 / (in_channels * math.prod(kernel))))

    def forward(self, x: Tensor) -> Tensor:
        y = getattr(F, self.op_type)(x, self.weight, **self.attrs)
        return y if self.bias is None else F.elementwise_add(y, self.bias, axis=1)


class Conv2DTranspose(Conv2D):
    """Op conv2d_transpose, and a bias per channel."""

    op_type = "conv2d_transpose"

    @staticmethod
    def _weight_shape(in_channels: int, out_channels: int, kernel: list[int], groups: int) -> list[int]:
        return [in_channels, out_channels // groups, *kernel]

    @staticmethod
    def _initializer(in_channels: int, kernel: list[int], groups: int) -> Initializer:
        limit = math.sqrt(6.0 / (in_channels * math.prod(kernel)))
        return initializer.Uniform(-limit, limit)


class _Pool2D(Module):
    kind = ""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | str | Sequence[int] = 0,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.attrs = {
            "pooling_type": self.kind,
            "ksize": _pair(kernel_size),
            "strides": _pair(kernel_size if stride is None else stride),
            "paddings": _pair(padding),
            "ceil_mode": ceil_mode,
        }

    def forward(self, x: Tensor) -> Tensor:
        return F.pool2d(x, **self.attrs)


class MaxPool2D(_Pool2D):
    """The largest of each window: op pool2d. stride: default the window."""

    kind = "max"


class AvgPool2D(_Pool2D):
    """The mean of each window: op pool2d. stride: default the window."""

    kind = "avg"


class AdaptiveAvgPool2D(Module):
    """Means of as many windows as output_size says: op pool2d."""

    def __init__(self, output_size: int | Sequence[int]) -> None:
        super().__init__()
        self.output_size = _pair(output_size)

    def forward(self, x: Tensor) -> Tensor:
        return F.pool2d(x, pooling_type="avg", ksize=self.output_size, adaptive=True)
