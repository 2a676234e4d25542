"""Layers of normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from oprack import initializer
from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttr, ParamAttrLike, Parameter, Variable, check_variable


# What layers of normalisations share.
def _require_known(input: Variable, dims: Sequence[int], layer: str, what: str) -> None:
    """InvalidArgumentError unless the dims are known while the program is written."""
    if any(d <= 0 for d in dims):
        raise InvalidArgumentError(
            f"{layer}: input {input.name!r} has shape {list(input.shape)}; expected {what} to be known, so give data() "
            "its size"
        )


def _scale_and_shift(helper: LayerHelper, shape: Sequence[int], dtype: object) -> dict[str, Parameter]:
    """Parameters Scale (ones) and Bias (zeros), each unless its attribute is False."""
    inputs = {}
    if helper.param_attr is not None:
        inputs["Scale"] = helper.create_parameter(
            helper.param_attr, shape, dtype, default_initializer=initializer.Constant(1.0)
        )
    if helper.bias_attr is not None:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, shape, dtype, is_bias=True)
    return inputs


# The layer batch_norm.
def batch_norm(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    use_global_stats: bool = False,
) -> Variable:
    r"""Appends op batch_norm: each channel normalized over the batch, then scaled and shifted.

    $$y = scale (x - \mu) / \sqrt{\sigma^2 + \epsilon} + bias$$. In training the moving mean and variance follow: moving
    * momentum + batch * (1 - momentum). `program.clone(for_test=True)` sets is_test.

    Args:
        input: A Variable of 2 to 5 dims, channels in dim 1, or last with data_layout="NHWC".
        act: The op that the result goes through, such as "relu"; None: none.
        is_test: Whether the moving statistics take the place of the batch's.
        momentum: The weight of the old moving statistics.
        epsilon: Added to the variance against division by zero.
        param_attr: Attributes of scale [C], which starts from 1.
        bias_attr: Attributes of the bias [C], which starts from 0.
        data_layout: "NCHW" or "NHWC".
        name: Prefix of the names of what the layer makes; None: that of the layer.
        moving_mean_name: Name of the moving mean, by which layers share it; None: made.
        moving_variance_name: Name of the moving variance, by which layers share it; None: made.
        use_global_stats: Whether the moving statistics are used in training, too.

    Returns:
        Variable of the shape and dtype of input.

    Raises:
        InvalidArgumentError: input has another rank, or an unknown number of channels, or data_layout is neither.
    """
    check_variable(input, "input", "batch_norm")
    if data_layout not in ("NCHW", "NHWC") or not 2 <= len(input.shape) <= 5:
        raise InvalidArgumentError(
            f"batch_norm: input has shape {list(input.shape)} and data_layout is {data_layout!r}; expected 2 to 5 dims "
            "and 'NCHW' or 'NHWC'"
        )
    channels = input.shape[1 if data_layout == "NCHW" else -1]
    _require_known(input, [channels], "batch_norm", "the number of channels")
    helper = LayerHelper("batch_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = "float32" if input.dtype in ("float16", "bfloat16") else input.dtype
    inputs = {
        "Scale": helper.create_parameter(param_attr, [channels], dtype, default_initializer=initializer.Constant(1.0)),
        "Bias": helper.create_parameter(bias_attr, [channels], dtype, is_bias=True),
    }
    fixed = ParamAttr(trainable=False)
    mean = helper.create_parameter(
        replace(fixed, name=moving_mean_name), [channels], dtype, default_initializer=initializer.Constant(0.0)
    )
    variance = helper.create_parameter(
        replace(fixed, name=moving_variance_name), [channels], dtype, default_initializer=initializer.Constant(1.0)
    )
    attrs = {
        "momentum": momentum,
        "epsilon": epsilon,
        "is_test": is_test,
        "data_layout": data_layout,
        "use_global_stats": use_global_stats,
    }
    y, *_ = helper.apply(
        "batch_norm",
        {"X": input, **inputs, "Mean": mean, "Variance": variance},
        attrs,
        # Paddle refuses to train a batch_norm without a place for its scratch
        outs={
            "MeanOut": mean,
            "VarianceOut": variance,
            "ReserveSpace": helper.create_variable_for_type_inference(input.dtype, stop_gradient=True),
        },
    )
    return helper.append_activation(y)


# The layer group_norm.
def group_norm(
    input: Variable,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Appends op group_norm: each group of a sample's channels normalized, then scaled and shifted per channel.

    Args:
        input: A Variable [N, C, ...], or with channels last.
        groups: Number of groups, of which C is a multiple.
        epsilon: Added to the variance against division by zero.
        param_attr: Attributes of the scale [C], which starts from 1; False: none.
        bias_attr: Attributes of the bias [C], which starts from 0; False: none.
        act: The op that the result goes through, such as "relu"; None: none.
        data_layout: "NCHW" or "NHWC".
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of input.

    Raises:
        InvalidArgumentError: The number of channels is unknown.
    """
    check_variable(input, "input", "group_norm")
    channels = input.shape[1 if data_layout == "NCHW" else -1]
    _require_known(input, [channels], "group_norm", "the number of channels")
    helper = LayerHelper("group_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    inputs = {"X": input, **_scale_and_shift(helper, [channels], input.dtype)}
    attrs = {"epsilon": epsilon, "groups": groups, "data_layout": data_layout}
    return helper.append_activation(helper.apply("group_norm", inputs, attrs))


# The layer instance_norm.
def instance_norm(
    input: Variable,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    name: str | None = None,
) -> Variable:
    """Appends op instance_norm: each channel of each sample normalized, then scaled and shifted.

    Args:
        input: A Variable [N, C, ...].
        epsilon: Added to the variance against division by zero.
        param_attr: Attributes of the scale [C], which starts from 1; False: none.
        bias_attr: Attributes of the bias [C], which starts from 0; False: none.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of input.

    Raises:
        InvalidArgumentError: The number of channels is unknown.
    """
    check_variable(input, "input", "instance_norm")
    _require_known(input, input.shape[1:2], "instance_norm", "the number of channels")
    helper = LayerHelper("instance_norm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    inputs = {"X": input, **_scale_and_shift(helper, list(input.shape[1:2]), input.dtype)}
    return helper.apply("instance_norm", inputs, {"epsilon": epsilon})


# The layer layer_norm.
def layer_norm(
    input: Variable,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    r"""Appends op layer_norm: the dims of each sample from begin_norm_axis on normalized, then scaled and shifted.

    $$y = scale (x - \mu) / \sqrt{\sigma^2 + \epsilon} + shift$$

    Args:
        input: A Variable of floats.
        scale: Whether there is a scale.
        shift: Whether there is a shift.
        begin_norm_axis: The first of the dims that are normalized.
        epsilon: Added to the variance against division by zero.
        param_attr: Attributes of the scale, of as many elements as these dims, which starts from 1.
        bias_attr: Attributes of the shift, of as many elements as these dims, which starts from 0.
        act: The op that the result goes through, such as "relu"; None: none.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of input.

    Raises:
        InvalidArgumentError: begin_norm_axis is out of range, or these dims are unknown.
    """
    check_variable(input, "input", "layer_norm")
    if not 0 < begin_norm_axis < len(input.shape):
        raise InvalidArgumentError(
            f"layer_norm: begin_norm_axis is {begin_norm_axis}, input has shape {list(input.shape)}; expected 1 to "
            f"{len(input.shape) - 1}"
        )
    dims = input.shape[begin_norm_axis:]
    _require_known(input, dims, "layer_norm", f"the dims from {begin_norm_axis} on")
    attrs = {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis}
    helper = LayerHelper(
        "layer_norm",
        param_attr=param_attr if scale else False,
        bias_attr=bias_attr if shift else False,
        act=act,
        name=name,
    )
    inputs = {"X": input, **_scale_and_shift(helper, [math.prod(dims)], input.dtype)}
    return helper.append_activation(helper.apply("layer_norm", inputs, attrs))
