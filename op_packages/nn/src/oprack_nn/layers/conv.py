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
    """Convolves images with learned filters: op conv2d, or depthwise_conv2d if each channel is a group.

    $$H_{out} = (H + p_{top} + p_{bottom} - d(k - 1) - 1) / s + 1$$, and the width likewise.

    Args:
        input: Images [N, C, H, W], or [N, H, W, C] with data_format="NHWC".
        num_filters: Number of filters, which is that of channels of the result.
        filter_size: Size k of the filters, an int or [h, w].
        stride: Step s between windows, an int or [h, w].
        padding: Zeros p around images: an int, [h, w], [top, bottom, left, right], a pair for each dim, "SAME" or
            "VALID".
        dilation: Distance d between the elements of a filter, an int or [h, w].
        groups: Into how many groups channels and filters are divided; None: 1.
        param_attr: Attributes of the filters [num_filters, C / groups, h, w]; they start from Normal(0, sqrt(2 / (h w
            C))).
        bias_attr: Attributes of the bias [num_filters]; False: none.
        act: The op that the result goes through, such as "relu"; None: none.
        name: Prefix of the names of what the layer makes; None: that of the layer.
        data_format: "NCHW" or "NHWC".

    Returns:
        Variable [N, num_filters, H_out, W_out], in the order of dims of input.

    Raises:
        InvalidArgumentError: input is no such Variable, or sizes, padding or groups do not fit.
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
    """Appends a 2-D transposed convolution, the gradient of conv2d: op conv2d_transpose, or its depthwise form.

    $$H_{out} = (H - 1) s - p_{top} - p_{bottom} + d(k - 1) + 1$$, and the width likewise. One of output_size and
    filter_size has to be given.

    Args:
        input: Images [N, C, H, W], or [N, H, W, C] with data_format="NHWC".
        num_filters: Number of channels of the result.
        output_size: Size of the result, an int or [h, w], up to stride - 1 more than the formula; None: by the formula.
        filter_size: Size k of the filters, an int or [h, w]; None: as output_size needs it.
        padding: Elements p cut off around the result: an int, [h, w], [top, bottom, left, right], a pair for each dim,
            "SAME" or "VALID".
        stride: Step s between windows, an int or [h, w].
        dilation: Distance d between the elements of a filter, an int or [h, w].
        groups: Into how many groups channels and filters are divided; None: 1.
        param_attr: Attributes of the filters [C, num_filters / groups, h, w].
        bias_attr: Attributes of the bias [num_filters]; False: none.
        act: The op that the result goes through, such as "relu"; None: none.
        name: Prefix of the names of what the layer makes; None: that of the layer.
        data_format: "NCHW" or "NHWC".

    Returns:
        Variable [N, num_filters, H_out, W_out], in the order of dims of input.

    Raises:
        InvalidArgumentError: Neither size is given, or sizes, padding or groups do not fit.
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
    """Appends op unfold: the windows of images as columns (im2col).

    Args:
        x: Images [N, C, H, W].
        kernel_sizes: Size of a window, an int or [h, w].
        strides: Step between windows, an int or [h, w].
        paddings: Zeros around images: an int, [h, w], or [top, left, bottom, right].
        dilations: Distance between the elements of a window, an int or [h, w].
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [N, C * h * w, windows].
    """
    check_variable(x, "x", "unfold")
    pads = [paddings] * 4 if isinstance(paddings, int) else list(paddings)
    attrs = {
        "kernel_sizes": [kernel_sizes] * 2 if isinstance(kernel_sizes, int) else list(kernel_sizes),
        "strides": [strides] * 2 if isinstance(strides, int) else list(strides),
        "paddings": pads * 2 if len(pads) == 2 else pads,
        "dilations": [dilations] * 2 if isinstance(dilations, int) else list(dilations),
    }
    return LayerHelper("unfold", name=name).apply("unfold", {"X": x}, attrs)
