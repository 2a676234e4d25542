"""Convolutions of lines [N, C, L], images [N, C, H, W] and volumes [N, C, D, H, W]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oprack import functional as F
from oprack import initializer
from oprack.nn import Module

from oprack_nn.functional import conv as C
from oprack_nn.functional._windows import Sizes, paddings, per_dim
from oprack_nn.functional.common import lod_of

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
    """Applies a 1-D convolution to sequences [N, C, L]: op conv2d over images of height 1.

    It takes rows [N, C] with LoD as well, and convolves each sequence for itself.

    Args:
        in_channels: Channels of the input, a multiple of groups.
        out_channels: Channels of the result: the number of filters, a multiple of groups.
        kernel_size: Size of the filters, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            or "VALID".
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        weight_attr: Attributes of the parameter weight [out_channels, in_channels / groups, size].
        bias_attr: Attributes of the parameter bias [out_channels]; False: no bias.
        data_format: "NCL" or "NLC"; "" is "NCL".

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding is none of those above.
    """

    rank = 1

    def forward(self, x: Tensor) -> Tensor:
        settings = self.stride, self.padding, self.dilation, self.groups, self.data_format
        return C.conv1d(x, self.weight, self.bias, *settings)


class Conv2D(_Convolution):
    """Applies a 2-D convolution to images [N, C, H, W]: op conv2d, or depthwise_conv2d.

    The latter is used where every channel has filters of its own, so that groups equals in_channels.

    Args:
        in_channels: Channels of the input, a multiple of groups.
        out_channels: Channels of the result: the number of filters, a multiple of groups.
        kernel_size: Size of the filters, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            or "VALID".
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        weight_attr: Attributes of the parameter weight [out_channels, in_channels / groups, height, width].
        bias_attr: Attributes of the parameter bias [out_channels]; False: no bias.
        data_format: "NCHW" or "NHWC".

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding is none of those above.
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
        y = lod_of(x, getattr(F, self.op_type)(x, self.weight, **self.attrs))
        return y if self.bias is None else F.elementwise_add(y, self.bias, axis=3 if self.data_format[1] == "H" else 1)


class Conv3D(_Convolution):
    """Applies a 3-D convolution to volumes [N, C, D, H, W]: op conv3d.

    Args:
        in_channels: Channels of the input, a multiple of groups.
        out_channels: Channels of the result: the number of filters, a multiple of groups.
        kernel_size: Size of the filters, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            or "VALID".
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        weight_attr: Attributes of the parameter weight [out_channels, in_channels / groups, depth, height, width].
        bias_attr: Attributes of the parameter bias [out_channels]; False: no bias.
        data_format: "NCDHW" or "NDHWC"; "" is "NCDHW".

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding is none of those above.
    """

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
    """Applies a 1-D transposed convolution, the gradient of Conv1D, to sequences [N, C, L].

    A call takes output_size, which chooses among the sizes that the stride leaves open.

    Args:
        in_channels: Channels of the input, a multiple of groups.
        out_channels: Channels of the result: the number of filters, a multiple of groups.
        kernel_size: Size of the filters, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            or "VALID".
        output_padding: Elements added at the end of each spatial dim of the result, one number or one per dim.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        weight_attr: Attributes of the parameter weight [in_channels, out_channels / groups, size].
        bias_attr: Attributes of the parameter bias [out_channels]; False: no bias.
        data_format: "NCL" or "NLC"; "" is "NCL".

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding is none of those above.
    """

    rank = 1

    def forward(self, x: Tensor, output_size: Sizes | None = None) -> Tensor:
        first, then = (self.stride, self.padding, self.output_padding), (self.groups, self.dilation)
        return C.conv1d_transpose(x, self.weight, self.bias, *first, *then, output_size, self.data_format)


class Conv2DTranspose(_Transposed):
    """Applies a 2-D transposed convolution, the gradient of Conv2D, to images [N, C, H, W]: op conv2d_transpose.

    A call takes output_size, which chooses among the sizes that the stride leaves open.

    Args:
        in_channels: Channels of the input, a multiple of groups.
        out_channels: Channels of the result: the number of filters, a multiple of groups.
        kernel_size: Size of the filters, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            or "VALID".
        output_padding: Elements added at the end of each spatial dim of the result, one number or one per dim.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        weight_attr: Attributes of the parameter weight [in_channels, out_channels / groups, height, width].
        bias_attr: Attributes of the parameter bias [out_channels]; False: no bias.
        data_format: "NCHW" or "NHWC"; "" is "NCHW".

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding is none of those above.
    """

    def forward(self, x: Tensor, output_size: Sizes | None = None) -> Tensor:
        first, then = (self.stride, self.padding, self.output_padding), (self.dilation, self.groups)
        return C.conv2d_transpose(x, self.weight, self.bias, *first, *then, output_size, self.data_format)


class Conv3DTranspose(_Transposed):
    """Applies a 3-D transposed convolution, the gradient of Conv3D, to volumes [N, C, D, H, W]: op conv3d_transpose.

    A call takes output_size, which chooses among the sizes that the stride leaves open.

    Args:
        in_channels: Channels of the input, a multiple of groups.
        out_channels: Channels of the result: the number of filters, a multiple of groups.
        kernel_size: Size of the filters, one number or one per spatial dim.
        stride: Step between windows, one number or one per spatial dim.
        padding: Zeros around the input: one number, one per spatial dim, or two per spatial dim (before, after); "SAME"
            or "VALID".
        output_padding: Elements added at the end of each spatial dim of the result, one number or one per dim.
        groups: Into how many groups channels and filters are divided; each filter sees the channels of its group alone.
        dilation: Distance between the elements of a filter, one number or one per spatial dim.
        weight_attr: Attributes of the parameter weight [in_channels, out_channels / groups, depth, height, width].
        bias_attr: Attributes of the parameter bias [out_channels]; False: no bias.
        data_format: "NCDHW" or "NDHWC"; "" is "NCDHW".

    Raises:
        InvalidArgumentError: A size has another number of elements, or padding is none of those above.
    """

    rank = 3

    def forward(self, x: Tensor, output_size: Sizes | None = None) -> Tensor:
        first, then = (self.stride, self.padding, self.output_padding), (self.groups, self.dilation)
        return C.conv3d_transpose(x, self.weight, self.bias, *first, *then, output_size, self.data_format)
