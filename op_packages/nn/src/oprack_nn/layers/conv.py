"""Layers of convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack import initializer
from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable

from oprack_nn.layers._images import add_bias, check_groups, check_image, int_pair, resolve_padding


# The layer conv2d.
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


# The layer conv2d_transpose.
def conv2d_transpose(
    input: Variable,
    num_filters: int,
    output_size: Sequence[int] | None = None,
    filter_size: int | Sequence[int] | None = None,
    padding: int | str | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    r"""The transposed convolution (gradient of conv2d): $$H_{out} = (H - 1) s - p_{top} - p_{bottom} + d(k - 1) + 1$$.

    One of output_size (an int or [h, w]; up to stride - 1 more than the formula) and filter_size has to be given.
    param_attr: of the filters [C, num_filters / groups, h, w]; other arguments as of conv2d. Ops conv2d_transpose, or
    depthwise_conv2d_transpose when each channel is a group. Raises InvalidArgumentError.
    """
    layer = "conv2d_transpose"
    input, last, channels = check_image(input, data_format, layer)
    helper = LayerHelper(layer, bias_attr=bias_attr, act=act, name=name)
    groups = check_groups(groups, channels, num_filters, layer)
    strides, dilations = int_pair(stride, "stride", layer), int_pair(dilation, "dilation", layer)
    paddings, algorithm = resolve_padding(padding, last, layer)
    sizes = [] if output_size is None else int_pair(output_size, "output_size", layer)
    if filter_size is not None:
        kernel = int_pair(filter_size, "filter_size", layer)
    else:
        kernel = _kernel_for(input, sizes, strides, paddings, dilations, last)
    w = helper.create_parameter(param_attr, [channels, num_filters // groups, *kernel], input.dtype)
    attrs = {
        "output_size": sizes,
        "strides": strides,
        "paddings": paddings,
        "padding_algorithm": algorithm,
        "dilations": dilations,
        "groups": groups,
        "data_format": data_format,
    }
    op_type = "depthwise_conv2d_transpose" if groups == channels == num_filters > 1 else layer
    return add_bias(helper, helper.apply(op_type, {"Input": input, "Filter": w}, attrs), last)


def _kernel_for(
    input: Variable,
    sizes: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
    last: bool,
) -> list[int]:
    dims = input.shape[1:3] if last else input.shape[2:4]
    if not sizes or any(d < 0 for d in dims):
        raise InvalidArgumentError(
            f"conv2d_transpose: filter_size is not given, output_size is {sizes or None} and input has shape "
            f"{list(input.shape)}; expected filter_size, or output_size and a known height and width"
        )
    pads = [2 * p for p in paddings] if len(paddings) == 2 else [sum(paddings[:2]), sum(paddings[2:])]
    rows = zip(sizes, dims, strides, pads, dilations, strict=True)
    return [(size - (d - 1) * s + p - 1) // dilation + 1 for size, d, s, p, dilation in rows]


# The layer unfold.
def unfold(
    x: Variable,
    kernel_sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    paddings: int | Sequence[int] = 0,
    dilations: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """[N, C * h * w, L]: the windows of [N, C, H, W] as columns; sizes are ints or [h, w]. Op unfold."""
    check_variable(x, "x", "unfold")
    pads = [paddings] * 4 if isinstance(paddings, int) else list(paddings)
    attrs = {
        "kernel_sizes": [kernel_sizes] * 2 if isinstance(kernel_sizes, int) else list(kernel_sizes),
        "strides": [strides] * 2 if isinstance(strides, int) else list(strides),
        "paddings": pads * 2 if len(pads) == 2 else pads,
        "dilations": [dilations] * 2 if isinstance(dilations, int) else list(dilations),
    }
    return LayerHelper("unfold", name=name).apply("unfold", {"X": x}, attrs)
