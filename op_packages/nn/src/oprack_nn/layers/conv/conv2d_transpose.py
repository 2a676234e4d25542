"""The layer conv2d_transpose."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttrLike, Variable

from oprack_nn.layers._images import add_bias, check_groups, check_image, int_pair, resolve_padding


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
