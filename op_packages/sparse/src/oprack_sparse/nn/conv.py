"""Convolutions over listed points, in images [N, H, W, C] and volumes [N, D, H, W, C]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oprack import initializer
from oprack.nn import Module

from oprack_sparse.nn import functional as S

if TYPE_CHECKING:
    from oprack import Tensor
    from oprack.layers import ParamAttrLike


class _Convolution(Module):
    """weight [space ..., in_channels, out_channels] and bias [out_channels]."""

    rank = 3
    subm = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: S.Sizes,
        stride: S.Sizes = 1,
        padding: S.Sizes = 0,
        dilation: S.Sizes = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        key: str | None = None,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        data_format: str = "",
    ) -> None:
        super().__init__()
        sizes = S.per_dim(kernel_size, self.rank, f"{type(self).__name__}: kernel_size")
        self.stride, self.padding, self.dilation, self.groups, self.key = stride, padding, dilation, groups, key
        self.data_format = data_format or ("NHWC" if self.rank == 2 else "NDHWC")
        scale = math.sqrt(2.0 / (in_channels * math.prod(sizes)))
        self.weight = self.create_parameter(
            [*sizes, in_channels, out_channels], weight_attr, default_initializer=initializer.Normal(0.0, scale)
        )
        self.bias = None if bias_attr is False else self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x: Tensor) -> Tensor:
        windows = (self.stride, self.padding, self.dilation)
        return S._conv(x, self.weight, self.bias, windows, self.groups, self.data_format, subm=self.subm, key=self.key)


class Conv3D(_Convolution):
    """A convolution over points of volumes: op sparse_conv3d."""


class SubmConv3D(_Convolution):
    """A convolution whose result has the points of its input."""

    subm = True


class Conv2D(_Convolution):
    """A convolution over points of images."""

    rank = 2


class SubmConv2D(_Convolution):
    """A convolution of images whose result has the points of its input."""

    rank = 2
    subm = True
