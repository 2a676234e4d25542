"""Convolutions, transposed convolutions and pooling of images."""

from __future__ import annotations

import math

from oprack import initializer
from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, check_variable


def _pair(value, argument, layer, rank=2):
    """An int for all spatial dims, or a list of them."""
    if isinstance(value, int):
        return [value] * rank
    if isinstance(value, list | tuple) and len(value) == rank and all(isinstance(v, int) for v in value):
        return list(value)
    raise InvalidArgumentError(
        f"{layer}: {argument} is {value!r}; expected an int or {rank} ints, for height and width"
    )


def _padding(value, channel_last, layer):
    """(paddings, padding_algorithm) of "SAME", "VALID", an int, [h, w], [top, bottom, left, right], a pair per dim."""
    if isinstance(value, str):
        if value.upper() not in ("SAME", "VALID"):
            raise InvalidArgumentError(f"{layer}: padding is {value!r}; expected 'SAME', 'VALID' or numbers")
        return [0, 0], value.upper()
    if isinstance(value, list | tuple) and len(value) == 4 and all(isinstance(v, list | tuple) for v in value):
        spatial = value[1:3] if channel_last else value[2:4]
        value = [v for pair in spatial for v in pair]
    if isinstance(value, list | tuple) and len(value) == 4:
        top, bottom, left, right = value
        return ([top, left] if top == bottom and left == right else list(value)), "EXPLICIT"
    return _pair(value, "padding", layer), "EXPLICIT"


def _image(input, data_format, layer):
    """(Variable, whether channels come last, number of channels)."""
    check_variable(input, "input", layer)
    if data_format not in ("NCHW", "NHWC") or len(input.shape) != 4:
        raise InvalidArgumentError(
            f"{layer}: input {input.name!r} has shape {list(input.shape)} and data_format is {data_format!r}; expected "
            "4 dims and 'NCHW' or 'NHWC'"
        )
    last = data_format == "NHWC"
    channels = input.shape[3 if last else 1]
    if channels <= 0:
        raise InvalidArgumentError(
            f"{layer}: input {input.name!r} has shape {list(input.shape)}; expected a known number of channels, so "
            "give data() its size"
        )
    return input, last, channels


def _groups(groups, channels, num_filters, layer):
    groups = groups or 1
    if channels % groups or num_filters % groups:
        raise InvalidArgumentError(
            f"{layer}: groups is {groups}; expected a divisor of the {channels} channels and {num_filters} filters"
        )
    return groups


def _biased(helper, out, last):
    start = 3 if last else 1
    return helper.append_activation(helper.append_bias_op(out, dim_start=start, dim_end=start + 1))


def conv2d(
    input,
    num_filters,
    filter_size,
    stride=1,
    padding=0,
    dilation=1,
    groups=None,
    param_attr=None,
    bias_attr=None,
    act=None,
    name=None,
    data_format="NCHW",
):
    r"""Images times learned filters: $$H_{out} = (H + p_{top} + p_{bottom} - d(k - 1) - 1) / s + 1$$.

    input: [N, C, H, W] (or NHWC). filter_size, stride, dilation: an int or [h, w]; padding: an int, [h, w], [top,
    bottom, left, right], a pair for each dim, "SAME" or "VALID". groups: filters see 1/groups of the channels.
    param_attr: of the filters [num_filters, C / groups, h, w], default Normal(0, sqrt(2 / (h w C))); bias_attr: of the
    bias [num_filters], False for none. Ops conv2d, or depthwise_conv2d when each channel is a group. Raises
    InvalidArgumentError.
    """
    input, last, channels = _image(input, data_format, "conv2d")
    helper = LayerHelper("conv2d", bias_attr=bias_attr, act=act, name=name)
    groups = _groups(groups, channels, num_filters, "conv2d")
    kernel = _pair(filter_size, "filter_size", "conv2d")
    std = math.sqrt(2.0 / (kernel[0] * kernel[1] * channels))
    w = helper.create_parameter(
        param_attr,
        [num_filters, channels // groups, *kernel],
        input.dtype,
        default_initializer=initializer.Normal(0.0, std),
    )
    paddings, algorithm = _padding(padding, last, "conv2d")
    attrs = {
        "strides": _pair(stride, "stride", "conv2d"),
        "paddings": paddings,
        "padding_algorithm": algorithm,
        "dilations": _pair(dilation, "dilation", "conv2d"),
        "groups": groups,
        "data_format": data_format,
    }
    op_type = "depthwise_conv2d" if groups == channels > 1 else "conv2d"
    return _biased(helper, helper.apply(op_type, {"Input": input, "Filter": w}, attrs), last)


def conv2d_transpose(
    input,
    num_filters,
    output_size=None,
    filter_size=None,
    padding=0,
    stride=1,
    dilation=1,
    groups=None,
    param_attr=None,
    bias_attr=None,
    act=None,
    name=None,
    data_format="NCHW",
):
    r"""The transposed convolution (gradient of conv2d): $$H_{out} = (H - 1) s - p_{top} - p_{bottom} + d(k - 1) + 1$$.

    One of output_size (an int or [h, w]; up to stride - 1 more than the formula) and filter_size has to be given.
    param_attr: of the filters [C, num_filters / groups, h, w]; other arguments as of conv2d. Ops conv2d_transpose, or
    depthwise_conv2d_transpose when each channel is a group. Raises InvalidArgumentError.
    """
    layer = "conv2d_transpose"
    input, last, channels = _image(input, data_format, layer)
    helper = LayerHelper(layer, bias_attr=bias_attr, act=act, name=name)
    groups = _groups(groups, channels, num_filters, layer)
    strides, dilations = _pair(stride, "stride", layer), _pair(dilation, "dilation", layer)
    paddings, algorithm = _padding(padding, last, layer)
    sizes = [] if output_size is None else _pair(output_size, "output_size", layer)
    if filter_size is not None:
        kernel = _pair(filter_size, "filter_size", layer)
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
    return _biased(helper, helper.apply(op_type, {"Input": input, "Filter": w}, attrs), last)


def _kernel_for(input, sizes, strides, paddings, dilations, last):
    dims = input.shape[1:3] if last else input.shape[2:4]
    if not sizes or any(d < 0 for d in dims):
        raise InvalidArgumentError(
            f"conv2d_transpose: filter_size is not given, output_size is {sizes or None} and input has shape "
            f"{list(input.shape)}; expected filter_size, or output_size and a known height and width"
        )
    pads = [2 * p for p in paddings] if len(paddings) == 2 else [sum(paddings[:2]), sum(paddings[2:])]
    rows = zip(sizes, dims, strides, pads, dilations, strict=True)
    return [(size - (d - 1) * s + p - 1) // dilation + 1 for size, d, s, p, dilation in rows]


def pool2d(
    input,
    pool_size=-1,
    pool_type="max",
    pool_stride=1,
    pool_padding=0,
    global_pooling=False,
    ceil_mode=False,
    name=None,
    exclusive=True,
    data_format="NCHW",
):
    """Maximum ("max") or mean ("avg") of windows of images [N, C, H, W] (or NHWC).

    pool_size, pool_stride: an int or [h, w]; pool_padding: as padding of conv2d. global_pooling: one window of the
    whole image. ceil_mode: round sizes up. exclusive: means leave padding out. Op pool2d. Raises InvalidArgumentError.
    """
    layer = "pool2d"
    input, last, _ = _image(input, data_format, layer)
    if pool_type not in ("max", "avg") or (pool_size == -1 and not global_pooling):
        raise InvalidArgumentError(
            f"pool2d: pool_type is {pool_type!r} and pool_size {pool_size!r}; expected 'max' or 'avg', and a size "
            "unless global_pooling"
        )
    paddings, algorithm = _padding(pool_padding, last, layer)
    attrs = {
        "pooling_type": pool_type,
        "ksize": _pair(pool_size, "pool_size", layer),
        "strides": _pair(pool_stride, "pool_stride", layer),
        "paddings": paddings,
        "padding_algorithm": algorithm,
        "global_pooling": global_pooling,
        "ceil_mode": ceil_mode,
        "exclusive": exclusive,
        "data_format": data_format,
    }
    return LayerHelper(layer, name=name).apply(layer, {"X": input}, attrs)


def adaptive_pool2d(input, pool_size, pool_type="max", name=None):
    """Pooling of [N, C, H, W] to [N, C, *pool_size], with windows that share the image evenly.

    Ops pool2d, max_pool2d_with_index. Raises InvalidArgumentError.
    """
    layer = "adaptive_pool2d"
    input, _, _ = _image(input, "NCHW", layer)
    if pool_type not in ("max", "avg"):
        raise InvalidArgumentError(f"{layer}: pool_type is {pool_type!r}; expected 'max' or 'avg'")
    helper = LayerHelper(layer, name=name)
    attrs = {"ksize": _pair(pool_size, "pool_size", layer), "adaptive": True}
    if pool_type == "max":
        out, places = helper.apply("max_pool2d_with_index", {"X": input}, attrs)
        places.stop_gradient = True
        return out
    return helper.apply("pool2d", {"X": input}, attrs | {"pooling_type": pool_type})
