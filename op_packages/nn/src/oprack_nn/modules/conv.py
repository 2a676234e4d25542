"""Convolutions of lines [N, C, L], images [N, C, H, W] and volumes [N, C, D, H, W]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oprack import functional as F
from oprack import initializer
from oprack.nn import Module

from oprack_nn.functional import conv as C
from oprack_nn.functional._windows import Sizes, paddings, per_dim

if TYPE_CHECKING:
    from oprack import Tensor
    from oprack.layers import Initializer, ParamAttrLike


class _Convolution(Module):
    """weight and bias; sizes: an int or one per dim; padding also "SAME" or "VALID"."""

    rank = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        data_format: str = "",
    ) -> None:
        super().__init__()
        name = f"{type(self).__name__}: "
        self.stride = per_dim(stride, self.rank, f"{name}stride")
        self.dilation = per_dim(dilation, self.rank, f"{name}dilation")
        paddings(padding, self.rank)  # refuses what is none
        self.padding, self.groups = padding, groups
        self.data_format = data_format or ("NCL", "NCHW", "NCDHW")[self.rank - 1]
        kernel = per_dim(kernel_size, self.rank, f"{name}kernel_size")
        self.weight = self.create_parameter(
            self._weight_shape(in_channels, out_channels, kernel, groups),
            weight_attr,
            default_initializer=self._initializer(in_channels, kernel),
        )
        self.bias = None if bias_attr is False else self.create_parameter([out_channels], bias_attr, is_bias=True)

    @staticmethod
    def _weight_shape(in_channels: int, out_channels: int, kernel: list[int], groups: int) -> list[int]:
        return [out_channels, in_channels // groups, *kernel]

    @staticmethod
    def _initializer(in_channels: int, kernel: list[int]) -> Initializer:
        return initializer.Normal(0.0, math.sqrt(2.0 / (in_channels * math.prod(kernel))))


class Conv1D(_Convolution):
    """Of lines [N, C, L], by op conv2d, and a bias per channel."""

    rank = 1

    def forward(self, x: Tensor) -> Tensor:
        settings = self.stride, self.padding, self.dilation, self.groups, self.data_format
        return C.conv1d(x, self.weight, self.bias, *settings)


class Conv2D(_Convolution):
    """Op conv2d, or depthwise_conv2d where every channel has filters of its own, and a bias per channel.

    kernel_size, stride, padding, dilation: an int or one per dim; padding also "SAME" or "VALID".
    """

    op_type = "conv2d"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        data_format: str = "NCHW",
    ) -> None:
        settings = stride, padding, dilation, groups, weight_attr, bias_attr, data_format
        super().__init__(in_channels, out_channels, kernel_size, *settings)
        self.attrs = paddings(padding, 2) | {"strides": self.stride, "dilations": self.dilation, "groups": groups}
        if data_format != "NCHW":
            self.attrs["data_format"] = data_format
        if self.op_type == "conv2d" and groups == in_channels and groups > 1 and out_channels % in_channels == 0:
            self.op_type = "depthwise_conv2d"

    def forward(self, x: Tensor) -> Tensor:
        y = getattr(F, self.op_type)(x, self.weight, **self.attrs)
        return y if self.bias is None else F.elementwise_add(y, self.bias, axis=3 if self.data_format[1] == "H" else 1)


class Conv3D(_Convolution):
    """Of volumes [N, C, D, H, W], by op conv3d, and a bias per channel."""

    rank = 3

    def forward(self, x: Tensor) -> Tensor:
        settings = self.stride, self.padding, self.dilation, self.groups, self.data_format
        return C.conv3d(x, self.weight, self.bias, *settings)


class _Transposed(_Convolution):
    """The weights of a convolution whose gradient this is."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        dilation: Sizes = 1,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        data_format: str = "",
    ) -> None:
        settings = stride, padding, dilation, groups, weight_attr, bias_attr, data_format
        super().__init__(in_channels, out_channels, kernel_size, *settings)
        self.output_padding = output_padding

    @staticmethod
    def _weight_shape(in_channels: int, out_channels: int, kernel: list[int], groups: int) -> list[int]:
        return [in_channels, out_channels // groups, *kernel]

    @staticmethod
    def _initializer(in_channels: int, kernel: list[int]) -> Initializer:
        limit = math.sqrt(6.0 / (in_channels * math.prod(kernel)))
        return initializer.Uniform(-limit, limit)


class Conv1DTranspose(_Transposed):
    """The gradient of Conv1D as a part of its own; output_size chooses among the sizes that it may have had."""

    rank = 1

    def forward(self, x: Tensor, output_size: Sizes | None = None) -> Tensor:
        first, then = (self.stride, self.padding, self.output_padding), (self.groups, self.dilation)
        return C.conv1d_transpose(x, self.weight, self.bias, *first, *then, output_size, self.data_format)


class Conv2DTranspose(_Transposed):
    """Op conv2d_transpose, and a bias per channel; output_size chooses among the sizes that it may have had."""

    def forward(self, x: Tensor, output_size: Sizes | None = None) -> Tensor:
        first, then = (self.stride, self.padding, self.output_padding), (self.dilation, self.groups)
        return C.conv2d_transpose(x, self.weight, self.bias, *first, *then, output_size, self.data_format)


class Conv3DTranspose(_Transposed):
    """The gradient of Conv3D as a part of its own; output_size chooses among the sizes that it may have had."""

    rank = 3

    def forward(self, x: Tensor, output_size: Sizes | None = None) -> Tensor:
        first, then = (self.stride, self.padding, self.output_padding), (self.groups, self.dilation)
        return C.conv3d_transpose(x, self.weight, self.bias, *first, *then, output_size, self.data_format)
