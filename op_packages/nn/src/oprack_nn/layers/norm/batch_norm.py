"""The layer batch_norm."""

from __future__ import annotations

from dataclasses import replace

from oprack import initializer
from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttr, ParamAttrLike, Variable, check_variable

from oprack_nn.layers.norm._family import require_known


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
    r"""$$y = scale (x - \mu) / \sqrt{\sigma^2 + \epsilon} + bias$$ per channel, over a batch; input of 2 to 5 dims.

    In training the moving mean and variance follow: moving * momentum + batch * (1 - momentum); with is_test or
    use_global_stats they take the place of the batch's. `program.clone(for_test=True)` sets is_test. Names for them
    share them among layers. Op batch_norm. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "batch_norm")
    if data_layout not in ("NCHW", "NHWC") or not 2 <= len(input.shape) <= 5:
        raise InvalidArgumentError(
            f"batch_norm: input has shape {list(input.shape)} and data_layout is {data_layout!r}; expected 2 to 5 dims "
            "and 'NCHW' or 'NHWC'"
        )
    channels = input.shape[1 if data_layout == "NCHW" else -1]
    require_known(input, [channels], "batch_norm", "the number of channels")
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
