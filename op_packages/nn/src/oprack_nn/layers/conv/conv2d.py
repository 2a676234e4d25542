"""The layer conv2d."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack import initializer
from oprack.layers import LayerHelper, ParamAttrLike, Variable

from oprack_nn.layers._images import add_bias, check_groups, check_image, int_pair, resolve_padding


def conv2d(
    input: Variable,
    num_filters: int,
    filter_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    r"""Images times learned filters: $$H_{out} = (H + p_{top} + p_{bottom} - d(k - 1) - 1) / s + 1$$.

    input: [N, C, H, W] (or NHWC). filter_size, stride, dilation: an int or [h, w]; padding: an int, [h, w], [top,
    bottom, left, right], a pair for each dim, "SAME" or "VALID". groups: filters see 1/groups of the channels.
    param_attr: of the filters [num_filters, C / groups, h, w], default Normal(0, sqrt(2 / (h w C))); bias_attr: of the
    bias [num_filters], False for none. Ops conv2d, or depthwise_conv2d when each channel is a group. Raises
    InvalidArgumentError.
    """
    input, last, channels = check_image(input, data_format, "conv2d")
    helper = LayerHelper("conv2d", bias_attr=bias_attr, act=act, name=name)
    groups = check_groups(groups, channels, num_filters, "conv2d")
    kernel = int_pair(filter_size, "filter_size", "conv2d")
    std = math.sqrt(2.0 / (kernel[0] * kernel[1] * channels))
    w = helper.create_parameter(
        param_attr,
        [num_filters, channels // groups, *kernel],
        input.dtype,
        default_initializer=initializer.Normal(0.0, std),
    )
    paddings, algorithm = resolve_padding(padding, last, "conv2d")
    attrs = {
        "strides": int_pair(stride, "stride", "conv2d"),
        "paddings": paddings,
        "padding_algorithm": algorithm,
        "dilations": int_pair(dilation, "dilation", "conv2d"),
        "groups": groups,
        "data_format": data_format,
    }
    op_type = "depthwise_conv2d" if groups == channels > 1 else "conv2d"
    return add_bias(helper, helper.apply(op_type, {"Input": input, "Filter": w}, attrs), last)
